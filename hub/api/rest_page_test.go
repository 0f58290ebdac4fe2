package api

import (
	"net/http"
	"strings"
	"testing"
)

// frontPage is one that takes what is below /ui/; /ui/large is as large as a description of the API.
type frontPage struct{}

func (frontPage) Serves(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/ui/") }

func (frontPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/ui/large" {
		_, _ = w.Write(make([]byte, 140_000))
		return
	}
	_, _ = w.Write([]byte("page " + r.URL.Path))
}

func TestThePageTakesWhatItServesAndNothingElse(t *testing.T) {
	s := serve(t, shop(t), func(o *Options) { o.Page = frontPage{} })
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/ui/":          {200, "page /ui/"},
		"/ui/x":         {200, "page /ui/x"},
		"/v1/clusters":  {401, `"code":16`},
		"/openapi.json": {200, "swagger"},
		"/":             {404, `"code":5`},
	} {
		response, body := s.call(t, "GET", path, "", http.Header{})
		if response.StatusCode != want.status || !strings.Contains(body, want.body) {
			t.Errorf("%s: HTTP %d: %.200s, want %d with %q", path, response.StatusCode, body, want.status, want.body)
		}
	}
}

func TestWithoutAPageThereIsNone(t *testing.T) {
	s := serve(t, shop(t), nil)
	if response, body := s.call(t, "GET", "/ui/", "", http.Header{}); response.StatusCode != 404 {
		t.Errorf("HTTP %d: %s", response.StatusCode, body)
	}
}
