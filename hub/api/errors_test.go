package api

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func TestEveryErrorHasAReasonForPrograms(t *testing.T) {
	first, second := ledgers(t)
	second.peer = nil
	s := serve(t, first, nil)
	object := func(who, cluster, name string) error {
		_, err := s.objects().GetObjectState(as(t, who), &plimsollv1.GetObjectStateRequest{Cluster: cluster, Controller: "webapp", Namespace: "shop", Name: name})
		return err
	}
	for name, c := range map[string]struct {
		err            error
		reason, member string
		retry          bool
	}{
		"no such member":     {object("admin", "none", "cart"), "MEMBER_NOT_FOUND", "none", false},
		"no such object":     {object("admin", "dev", "none"), "NOT_FOUND", "", false},
		"a dead owner":       {object("admin", "test", "cart"), "MEMBER_UNAVAILABLE", "test", true},
		"no right":           {object("nobody", "dev", "cart"), "ACCESS_DENIED", "dev", false},
		"no token":           {object("impostor", "dev", "cart"), "UNAUTHENTICATED", "", false},
		"a field is invalid": {object("admin", "dev", "-"), "INVALID_ARGUMENT", "", false},
	} {
		var info *errdetails.ErrorInfo
		retry := false
		for _, detail := range status.Convert(c.err).Details() {
			switch detail := detail.(type) {
			case *errdetails.ErrorInfo:
				info = detail
			case *errdetails.RetryInfo:
				retry = true
			}
		}
		if info.GetReason() != c.reason || info.GetDomain() != auth.Group || info.GetMetadata()["member"] != c.member || retry != c.retry {
			t.Errorf("%s: %v, retry %v: %v", name, info, retry, c.err)
		}
	}
	// Whoever lacks a right asks an administrator for it: all of it is in the details.
	for _, detail := range status.Convert(object("nobody", "dev", "cart")).Details() {
		want := map[string]string{"verb": "get", "resource": "objects", "member": "dev", "namespace": "shop"}
		if info, ok := detail.(*errdetails.ErrorInfo); ok && !maps.Equal(info.GetMetadata(), want) {
			t.Errorf("the right that is missing is %v, want %v", info.GetMetadata(), want)
		}
	}
	answer, body := s.call(t, http.MethodGet, "/v1/clusters/none", "", bearing("admin"))
	if answer.StatusCode != http.StatusNotFound || !strings.Contains(body, `"reason":"MEMBER_NOT_FOUND"`) {
		t.Errorf("%s %s", answer.Status, body)
	}
	// HTTP clients that know nothing of google.rpc wait by the header.
	for path, want := range map[string]string{"/v1/clusters/none": "", "/v1/clusters/test/controllers/webapp/objects/shop/cart": "1"} {
		if answer, body := s.call(t, http.MethodGet, path, "", bearing("admin")); answer.Header.Get("Retry-After") != want {
			t.Errorf("%s: Retry-After %q, want %q: %s %s", path, answer.Header.Get("Retry-After"), want, answer.Status, body)
		}
	}
}
