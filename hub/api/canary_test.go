package api

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// canary represents a secret that must appear nowhere.
const canary = "canary-eyJhbGciOiJSUzI1NiJ9"

// TestNoTokenComesBackOrIsLogged puts a secret into every place where a caller may put one, rightly or by mistake, and
// looks for it in everything that comes out.
func TestNoTokenComesBackOrIsLogged(t *testing.T) {
	r := shop(t)
	s := serve(t, r, nil)
	said := func(what, text string) {
		for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
			if strings.Contains(text, form) {
				t.Errorf("%s holds the secret: %s", what, text)
			}
		}
	}
	for method, call := range everyCall(s) {
		for _, header := range []string{"Bearer " + canary, "Basic " + canary, canary, "Bearer  " + canary} {
			said(method, status.Convert(call(metadata.AppendToOutgoingContext(t.Context(), "authorization", header))).String())
		}
		s.broken = errors.New("the hub cluster is down")
		said(method, status.Convert(call(as(t, canary))).String())
		s.broken = nil
	}
	for _, path := range []string{
		"/v1/clusters", "/v1/clusters/" + canary, "/v1/clusters?page_token=" + canary, "/v1/operations/" + canary, "/v1/" + canary,
		"/v1/clusters/prod/namespaces/" + canary + "/workloads/" + canary + "/" + canary, "/openapi.json",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for name, header := range map[string]http.Header{"a bad one": bearing(canary), "a good one": bearing("admin")} {
				_, body := s.call(t, method, path, "", header)
				said(method+" "+path+" with "+name, body)
			}
		}
	}
	_, err := s.workloads().ListWorkloads(as(t, "admin"), &plimsollv1.ListWorkloadsRequest{Cluster: canary, PageToken: canary})
	said("a request with a secret", status.Convert(err).String())
	said("the log", s.log.String())
	if !strings.Contains(s.log.String(), "Unauthenticated") {
		t.Error("nothing was logged: the test tests nothing")
	}
}
