package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// FuzzREST looks for a call over REST that panics, that is answered as a failure of the hub's own, or whose error is not JSON.
func FuzzREST(f *testing.F) {
	for _, call := range [][4]string{
		{http.MethodGet, "/v1/workloads", "filter=workload.name%3D%3D%22cart%22&order_by=name&page_size=1&read_mask=name", ""},
		{http.MethodGet, "/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart", "", ""},
		{http.MethodGet, "/v1/operations/w.prod.shop.id-0", "wait=0s", ""},
		{http.MethodGet, "/v1/clusters/prod%2f..", "pageToken=x&page_token=y", ""},
		{http.MethodPost, "/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:requeue", "", `{"force":true,"forced":1}`},
		{http.MethodPost, "/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:whatIf", "", `{"spotPercentage":1e9}`},
		{http.MethodPost, "/v1/objects:requeueMatching", "", `{"filter":"true","validateOnly":true}`},
		{http.MethodPost, "/v1/objects:requeueMatching", "x", `{"filter":{"a":[null]}}{`},
		{http.MethodDelete, "/v1", "%zz", "\x00"},
		{http.MethodGet, "/v1/operations", "\xf6", ""},
	} {
		f.Add(call[0], call[1], call[2], call[3], "application/json")
	}
	r := shop(f)
	people := &people{}
	server, err := New(Options{Backend: r.backend(), Peers: r.fleet, Authenticator: people, Authorizer: people, CallsPerSecond: -1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, path, query, body, kind string) {
		if strings.HasSuffix(path, ":watch") || strings.Contains(query, "wait") { // which take their time
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, method, "http://hub.example/", strings.NewReader(body))
		if err != nil {
			return
		}
		unescaped, err := url.PathUnescape(path)
		if err != nil || !strings.HasPrefix(unescaped, "/v1/") {
			return
		}
		request.URL.Path, request.URL.RawPath, request.URL.RawQuery = unescaped, path, query
		request.RemoteAddr, request.Header = "10.0.0.1:1", http.Header{"Authorization": {"Bearer admin"}, "Content-Type": {kind}}
		answer := httptest.NewRecorder()
		server.rest.Handler.ServeHTTP(answer, request)
		if answer.Code == http.StatusInternalServerError || answer.Code == http.StatusGatewayTimeout {
			t.Errorf("%s %s?%s %q: HTTP %d: %s", method, path, query, body, answer.Code, answer.Body)
		}
		var status restError
		if answer.Code >= 400 && (json.Unmarshal(answer.Body.Bytes(), &status) != nil || status.Code == 0) {
			t.Errorf("%s %s?%s %q: HTTP %d is not explained: %s", method, path, query, body, answer.Code, answer.Body)
		}
	})
}
