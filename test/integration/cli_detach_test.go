package integration

import (
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// forceDetach gives the registered member up, and takes it back.
func forceDetach(t *testing.T, s *cliSite) {
	const reason = "the region was given up"
	before := s.registered(t, "prod-eu")
	if got := s.ok(t, "force-detach", "prod-eu", "--reason", reason, "--hub-context", "hub"); !strings.Contains(got.out, "updated") {
		t.Errorf("it did\n%s", got.out)
	}
	if got := s.ok(t, "force-detach", "prod-eu", "--reason", reason, "--hub-context", "hub"); !strings.Contains(got.out, "unchanged") {
		t.Errorf("again it did\n%s", got.out)
	}
	secret := s.registered(t, "prod-eu")
	if secret.Annotations[clusters.DetachedAnnotation] != reason || string(secret.Data["kubeconfig"]) != string(before.Data["kubeconfig"]) {
		t.Errorf("annotations %v", secret.Annotations)
	}
	s.ok(t, "force-detach", "prod-eu", "--undo", "--hub-context", "hub")
	if value, there := s.registered(t, "prod-eu").Annotations[clusters.DetachedAnnotation]; there {
		t.Errorf("the annotation is still there: %q", value)
	}
	for _, name := range []string{"database", "nobody"} {
		got := s.plimsoll(t, "force-detach", name, "--reason", reason, "--hub-context", "hub")
		if got.code == 0 || !strings.Contains(got.err, name) {
			t.Errorf("force-detach %s: %+v", name, got)
		}
	}
}
