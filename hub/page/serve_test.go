package page_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/hub/page"
)

// A browser that begins at the hub's address gets the page, and everything that the page loads, under a policy that lets nothing else in.
func TestABrowserThatOpensTheHubGetsTheWholePage(t *testing.T) {
	handler, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	hub := httptest.NewServer(handler)
	defer hub.Close()

	index := get(t, hub.Client(), hub.URL+"/")
	loaded := regexp.MustCompile(`(?:href|src)="([^"#:]+)"`).FindAllStringSubmatch(index, -1)
	if len(loaded) < 3 {
		t.Fatalf("the page loads %d files: %s", len(loaded), index)
	}
	for _, file := range loaded {
		if text := get(t, hub.Client(), hub.URL+page.Path+file[1]); text == "" || text == index {
			t.Errorf("%s has no content of its own", file[1])
		}
	}
}

// get returns what a browser gets, over redirects; the transport asks for gzip and takes it apart.
func get(t *testing.T, browser *http.Client, url string) string {
	t.Helper()
	answer, err := browser.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", url, answer.StatusCode, err)
	}
	policy := answer.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s: policy %q, headers %v", url, policy, answer.Header)
	}
	return string(body)
}

// The page stands beside the REST API: what is not its own is left to others.
func ExampleHandler_Serves() {
	handler, err := page.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"/", "/ui/app.js", "/v1/clusters"} {
		fmt.Println(path, handler.Serves(httptest.NewRequest(http.MethodGet, path, nil)))
	}
	// Output:
	// / true
	// /ui/app.js true
	// /v1/clusters false
}
