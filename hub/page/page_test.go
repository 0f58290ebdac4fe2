package page

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func handler(t *testing.T) *Handler {
	t.Helper()
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func ask(h http.Handler, method, path string, header http.Header) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, "http://hub.example"+path, nil)
	for name, values := range header {
		request.Header[name] = values
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	return answer
}

// wantedHeaders are those that every answer has to have: what the handler sends does not decide that.
var wantedHeaders = map[string]string{
	"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
	"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

func TestEveryFileIsServedWithItsTypeUnderTheStrictPolicy(t *testing.T) {
	h := handler(t)
	for name, found := range h.assets {
		answer := ask(h, "GET", Path+name, nil)
		if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != types[path.Ext(name)] || !bytes.Equal(answer.Body.Bytes(), found.Plain()) {
			t.Errorf("%s: status %d, type %q, %d bytes", name, answer.Code, answer.Header().Get("Content-Type"), answer.Body.Len())
		}
		for header, want := range wantedHeaders {
			if got := answer.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
	if body := ask(h, "GET", Path, nil).Body.String(); !strings.Contains(body, "<!doctype html>") {
		t.Errorf("%s has %q", Path, body)
	}
}

func TestThePolicyAllowsNothingInlineAndNothingFromElsewhere(t *testing.T) {
	directives := map[string]string{}
	for directive := range strings.SplitSeq(policy, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), " ")
		directives[name] = value
	}
	for name, want := range map[string]string{
		"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'", "img-src": "'self'",
		"base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'", "require-trusted-types-for": "'script'", "trusted-types": "'none'",
	} {
		if directives[name] != want {
			t.Errorf("%s is %q, want %q", name, directives[name], want)
		}
		delete(directives, name)
	}
	if len(directives) > 0 {
		t.Errorf("there is more than is known to be safe: %v", directives)
	}
}

// What the policy would refuse, and what would make markup of text, is not in the files in the first place.
func TestTheFilesHaveNothingInlineAndMakeNoMarkup(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|localStorage|document\.cookie|indexedDB|\sstyle="|\son[a-z]+="|javascript:`)
	elsewhere := regexp.MustCompile(`(https?:)?//[a-z0-9-]+\.[a-z]`)
	for name, found := range handler(t).assets {
		text := string(found.Plain())
		if hit := forbidden.FindString(text); hit != "" {
			t.Errorf("%s has %q", name, hit)
		}
		if hit := elsewhere.FindString(text); hit != "" && path.Ext(name) != ".svg" {
			t.Errorf("%s names an address elsewhere: %q", name, hit)
		}
	}
}

// A call has the token of the tab, and nothing that a browser adds by itself: whoever has signed out would still be known by a certificate.
func TestThePageCallsWithItsTokenAndNothingElse(t *testing.T) {
	calls := regexp.MustCompile(`\bfetch\(|XMLHttpRequest|EventSource|WebSocket|sendBeacon`)
	for name, found := range handler(t).assets {
		text := string(found.Plain())
		made := calls.FindAllString(text, -1)
		if name != "api.js" {
			if len(made) > 0 {
				t.Errorf("%s makes calls of its own: %q", name, made)
			}
			continue
		}
		if len(made) != 1 || made[0] != "fetch(" {
			t.Errorf("%s calls by %q, want one fetch", name, made)
		}
		for _, want := range []string{`credentials: "omit"`, `redirect: "error"`, `cache: "no-store"`, `referrerPolicy: "no-referrer"`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %s", name, want)
			}
		}
	}
}

func TestTheIndexLoadsEveryModuleAtOnceAndOnlyFilesThatThereAre(t *testing.T) {
	h := handler(t)
	text := string(h.assets[index].Plain())
	loaded := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?:href|src)="([^"#]+)"`).FindAllStringSubmatch(text, -1) {
		loaded[match[1]] = true
		if _, ok := h.assets[match[1]]; !ok {
			t.Errorf("the index loads %s, which is not there", match[1])
		}
	}
	for name, found := range h.assets {
		if path.Ext(name) == ".js" && !loaded[name] {
			t.Errorf("the index does not preload %s: it would be found one round trip later", name)
		}
		for _, match := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(string(found.Plain()), -1) {
			if _, ok := h.assets[match[1]]; !ok {
				t.Errorf("%s imports %s, which is not there", name, match[1])
			}
		}
	}
}

func TestWhatACallerHasIsNotSentAgain(t *testing.T) {
	h := handler(t)
	for _, coding := range []string{"", "gzip"} {
		first := ask(h, "GET", Path+"app.js", http.Header{"Accept-Encoding": {coding}})
		etag := first.Header().Get("Etag")
		if etag == "" || first.Header().Get("Cache-Control") != "no-cache" || first.Header().Get("Vary") != "Accept-Encoding" {
			t.Fatalf("coding %q: headers %v", coding, first.Header())
		}
		for _, sent := range []string{etag, "W/" + etag, `"other", ` + etag, "*"} {
			again := ask(h, "GET", Path+"app.js", http.Header{"Accept-Encoding": {coding}, "If-None-Match": {sent}})
			if again.Code != http.StatusNotModified || again.Body.Len() > 0 || again.Header().Get("Etag") != etag {
				t.Errorf("coding %q, If-None-Match %s: status %d, %d bytes", coding, sent, again.Code, again.Body.Len())
			}
		}
		if other := ask(h, "GET", Path+"style.css", http.Header{"Accept-Encoding": {coding}, "If-None-Match": {etag}}); other.Code != http.StatusOK {
			t.Errorf("the validator of one file passes for another")
		}
	}
}

func TestThePageIsLessThan150KB(t *testing.T) {
	plain := 0
	for _, found := range handler(t).assets {
		plain += len(found.Plain())
	}
	if plain > 150_000 {
		t.Errorf("the files have %d bytes before compression", plain)
	}
}

func TestWhatIsNoFileOfThePageIsNotFound(t *testing.T) {
	h := handler(t)
	for _, below := range []string{
		"nothing", "app.js/", "../page.go", "assets/app.js", "..%2fpage.go", "%2e%2e/page.go", "./app.js", "/app.js", "//etc/passwd", "app.js%00", `..\page.go`, "APP.JS",
	} {
		answer := ask(h, "GET", Path+below, nil)
		if answer.Code != http.StatusNotFound || answer.Header().Get("Content-Security-Policy") != policy {
			t.Errorf("%q: status %d", below, answer.Code)
		}
	}
}

func TestOtherMethodsAreRefused(t *testing.T) {
	h := handler(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "TRACE"} {
		if answer := ask(h, method, Path, nil); answer.Code != http.StatusMethodNotAllowed || answer.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: status %d, Allow %q", method, answer.Code, answer.Header().Get("Allow"))
		}
	}
	if answer := ask(h, "HEAD", Path, nil); answer.Code != http.StatusOK || answer.Body.Len() > 0 || answer.Header().Get("Content-Length") == "" {
		t.Errorf("HEAD: status %d with %d bytes", answer.Code, answer.Body.Len())
	}
}

func TestTheAddressesBesideThePageLeadToIt(t *testing.T) {
	h := handler(t)
	for _, from := range []string{"/", "/ui"} {
		if answer := ask(h, "GET", from, nil); answer.Code != http.StatusFound || answer.Header().Get("Location") != "ui/" {
			t.Errorf("%s: status %d to %q", from, answer.Code, answer.Header().Get("Location"))
		}
	}
	for path, want := range map[string]bool{"/": true, "/ui": true, "/ui/x": true, "/v1/clusters": false, "/uix": false, "/openapi.json": false, "/v1/ui/": false} {
		if got := h.Serves(httptest.NewRequest("GET", path, nil)); got != want {
			t.Errorf("serves %s: %t", path, got)
		}
	}
}

func TestFilesThatABuildMustNotContainAreRefused(t *testing.T) {
	for name, files := range map[string]fs.FS{
		"a file without a content type": fstest.MapFS{"assets/index.html": {}, "assets/x.exe": {}},
		"no index":                      fstest.MapFS{"assets/app.js": {}},
		"nothing":                       fstest.MapFS{},
	} {
		if _, err := newHandler(files); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
