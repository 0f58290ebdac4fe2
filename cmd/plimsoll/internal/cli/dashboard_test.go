package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

// openDashboard makes a dashboard of a hub whose page is at http://127.0.0.1:7777.
func openDashboard(t *testing.T, h *hub) *dashboard {
	t.Helper()
	conn := connection.New(func(key string) string {
		return map[string]string{"PLIMSOLL_API": h.address, "PLIMSOLL_TOKEN": canary}[key]
	})
	command := &cobra.Command{}
	conn.AddFlags(command)
	if err := command.ParseFlags([]string{"--insecure-plaintext", "--timeout=1m"}); err != nil {
		t.Fatal(err)
	}
	api, err := conn.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	d, err := newDashboard("127.0.0.1:7777", api)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// browse makes a request as a browser would.
func browse(d *dashboard, method, path, body string, header map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:7777"+path, strings.NewReader(body))
	for name, value := range header {
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

// signIn exchanges the secret.
func signIn(t *testing.T, d *dashboard) string {
	t.Helper()
	w := browse(d, "POST", "/dashboard/session", `{"secret":"`+d.secret+`"}`, map[string]string{"Origin": "http://127.0.0.1:7777"})
	var session struct{ Token string }
	if err := json.Unmarshal(w.Body.Bytes(), &session); err != nil || w.Code != 200 || session.Token == "" {
		t.Fatalf("HTTP %d: %s, %v", w.Code, w.Body, err)
	}
	return session.Token
}

func TestTheDashboardCallsWithTheTokenOfTheCommand(t *testing.T) {
	h := startHub(t)
	d := openDashboard(t, h)
	session := signIn(t, d)
	w := browse(d, "GET", "/v1/clusters", "", map[string]string{"Authorization": "Bearer " + session, "Origin": "http://127.0.0.1:7777"})
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"clusters":[`) {
		t.Fatalf("HTTP %d: %s", w.Code, w.Body)
	}
	if strings.Contains(w.Body.String()+session, canary) {
		t.Error("the browser gets the token")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.tokens, []string{"Bearer " + canary}) {
		t.Errorf("the API got %q", h.tokens)
	}
}

// Every service whose calls the page makes.
func TestTheDashboardHasAllCallsOfThePage(t *testing.T) {
	d := openDashboard(t, startHub(t))
	session := signIn(t, d)
	for _, path := range []string{"/v1/clusters", "/v1/workloads", "/v1/objects", "/v1/events", "/v1/fleetplacements"} {
		w := browse(d, "GET", path, "", map[string]string{"Authorization": "Bearer " + session, "Origin": "http://127.0.0.1:7777"})
		if w.Code == http.StatusNotFound {
			t.Errorf("%s: HTTP %d: %s", path, w.Code, w.Body)
		}
	}
}

func TestTheDashboardServesThePageToABrowserThatShowsNothing(t *testing.T) {
	d := openDashboard(t, startHub(t))
	w := browse(d, "GET", "/ui/", "", nil)
	if w.Code != 200 || !strings.Contains(w.Body.String(), "<!doctype html>") || w.Header().Get("Content-Security-Policy") == "" || strings.Contains(w.Body.String(), d.secret) {
		t.Errorf("HTTP %d with %v: %s", w.Code, w.Header(), w.Body)
	}
}

func TestTheSecretOfADashboardWorksOnce(t *testing.T) {
	d := openDashboard(t, startHub(t))
	for _, body := range []string{`{"secret":"guess"}`, `{}`, ``, `{"secret":""}`, `nonsense`} {
		if w := browse(d, "POST", "/dashboard/session", body, nil); w.Code != http.StatusUnauthorized {
			t.Errorf("%q: HTTP %d", body, w.Code)
		}
	}
	signIn(t, d)
	if w := browse(d, "POST", "/dashboard/session", `{"secret":"`+d.secret+`"}`, nil); w.Code != http.StatusUnauthorized {
		t.Errorf("the second time: HTTP %d: %s", w.Code, w.Body)
	}
}

func TestADashboardAnswersNobodyElse(t *testing.T) {
	h := startHub(t)
	d := openDashboard(t, h)
	if w := browse(d, "GET", "/v1/clusters", "", map[string]string{"Authorization": "Bearer "}); w.Code != http.StatusUnauthorized {
		t.Errorf("before anybody has signed in: HTTP %d", w.Code)
	}
	session := signIn(t, d)
	for name, c := range map[string]struct {
		path   string
		header map[string]string
		status int
	}{
		"no session":               {"/v1/clusters", nil, 401},
		"a wrong session":          {"/v1/clusters", map[string]string{"Authorization": "Bearer x"}, 401},
		"the command's own token":  {"/v1/clusters", map[string]string{"Authorization": "Bearer " + canary}, 401},
		"the secret":               {"/v1/clusters", map[string]string{"Authorization": "Bearer " + d.secret}, 401},
		"a name that resolves":     {"/v1/clusters", map[string]string{"Authorization": "Bearer " + session, "Host": "evil.example:7777"}, 403},
		"another port":             {"/v1/clusters", map[string]string{"Authorization": "Bearer " + session, "Host": "127.0.0.1:80"}, 403},
		"a page of another site":   {"/v1/clusters", map[string]string{"Authorization": "Bearer " + session, "Origin": "https://evil.example"}, 403},
		"a page from a file":       {"/v1/clusters", map[string]string{"Authorization": "Bearer " + session, "Origin": "null"}, 403},
		"the page, rebound":        {"/ui/", map[string]string{"Host": "evil.example"}, 403},
		"what is not of the API":   {"/metrics", map[string]string{"Authorization": "Bearer " + session}, 404},
		"a path that leaves":       {"/v1/../metrics", map[string]string{"Authorization": "Bearer " + session}, 404},
		"the exchange by GET":      {"/dashboard/session", map[string]string{"Authorization": "Bearer " + session}, 404},
		"a session beside another": {"/v1/clusters", map[string]string{"Authorization": "Bearer " + session + ",x"}, 401},
	} {
		if w := browse(d, "GET", c.path, "", c.header); w.Code != c.status {
			t.Errorf("%s: HTTP %d: %s, want %d", name, w.Code, w.Body, c.status)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.tokens) > 0 {
		t.Errorf("the API was called %d times", len(h.tokens))
	}
}

func TestTheDashboardEndsWithItsCommand(t *testing.T) {
	h := startHub(t)
	ctx, cancel := context.WithCancel(t.Context())
	printed, out := io.Pipe()
	ended := make(chan int)
	var errs bytes.Buffer
	go func() {
		ended <- Run(ctx, []string{"plimsoll", "dashboard", "--insecure-plaintext"}, Environment{
			Out: out, Err: &errs, Now: time.Now,
			Getenv: func(key string) string {
				return map[string]string{"PLIMSOLL_API": h.address, "PLIMSOLL_TOKEN": canary}[key]
			},
		})
	}()
	address := make([]byte, 1024)
	n, err := printed.Read(address)
	if err != nil {
		t.Fatal(err)
	}
	url, secret, ok := strings.Cut(strings.TrimSpace(string(address[:n])), "#once=")
	if !ok || len(secret) < 20 || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Errorf("it printed %q", address[:n])
	}
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if code := <-ended; code != exitOK || answer.StatusCode != 200 {
		t.Errorf("exit code %d, HTTP %d; %s", code, answer.StatusCode, errs.String())
	}
}

func TestADashboardThatCannotWorkIsNotOpened(t *testing.T) {
	h := startHub(t)
	for _, address := range []string{"0.0.0.0:0", "localhost:0", ":0", "192.0.2.1:80", "127.0.0.1"} {
		if got := h.run(t, "dashboard", "--listen", address); got.code != exitUsage || !strings.Contains(got.err, "loopback") {
			t.Errorf("--listen %s: %+v", address, got)
		}
	}
	h.fail = status.Error(codes.Unauthenticated, "the token has expired")
	if got := h.run(t, "dashboard"); got.code != exitDenied || !strings.Contains(got.err, "the token has expired") || got.out != "" {
		t.Errorf("%+v", got)
	}
}

// A browser names the port of an address only where it is not the one that http has anyway.
func TestADashboardOnPort80AnswersWhatBrowsersCallIt(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1", "[::1]:80": "[::1]", "127.0.0.1:8080": "127.0.0.1:8080", "[::1]:7777": "[::1]:7777",
	} {
		if got := hostOf(address); got != want {
			t.Errorf("%s is called %s, want %s", address, got, want)
		}
	}
	d := openDashboard(t, startHub(t))
	d.host = hostOf("127.0.0.1:80")
	for host, want := range map[string]int{"127.0.0.1": 200, "127.0.0.1:7777": 403, "evil.example": 403} {
		if w := browse(d, "GET", "/ui/", "", map[string]string{"Host": host, "Origin": "http://" + host}); w.Code != want {
			t.Errorf("Host %s: HTTP %d, want %d", host, w.Code, want)
		}
	}
}
