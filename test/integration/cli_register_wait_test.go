package integration

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// TestRegisterWaitsUntilMembersAreReady registers real clusters at a running hub, with nothing but a kubeconfig: the command finds the API by
// what the hub publishes, and requests a token.
func TestRegisterWaitsUntilMembersAreReady(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t)
	s := &cliSite{binary: t.TempDir() + "/plimsoll", kubeconfig: t.TempDir() + "/config", hub: f.Hub}
	if err := fleet.BuildCLI(t.Context(), "../..", s.binary); err != nil {
		t.Fatal(err)
	}
	kubeconfigs := [][]byte{f.Hub.Kubeconfig()}
	for _, name := range []string{"prod-eu", "prod-us"} {
		kubeconfigs = append(kubeconfigs, kube.New(t, kube.Options{Name: name}).Kubeconfig())
	}
	s.write(t, s.kubeconfig, kubeconfigs...)
	waiting := func(more ...string) []string {
		return append([]string{"register", "--hub-context", "hub", "--wait"}, more...)
	}

	if got := s.plimsoll(t, waiting("prod-eu", "--context", "prod-eu")...); got.code != 4 || !strings.Contains(got.err, "nothing is changed") || s.registered(t, "prod-eu") != nil {
		t.Errorf("without a hub: %+v", got)
	}
	s.runHub(t, f)

	// One that does not become ready, because the hub reaches nobody there. The error says which, and why.
	got := s.plimsoll(t, waiting("prod-eu", "--context", "prod-eu", "--server", "https://127.0.0.1:1", "--timeout", "15s")...)
	for _, part := range []string{"prod-eu is registered, but not ready", "it is Unreachable: condition Reachable is False, ConnectionRefused", "hint: check that the member's API server runs"} {
		if got.code != 6 || !strings.Contains(got.err, part) {
			t.Errorf("%q is not in %+v", part, got)
		}
	}
	// One that the hub refuses: the command does not wait for its time to be over.
	got = s.plimsoll(t, waiting("prod-eu", "--context", "prod-eu", "--server", "https://192.0.2.1", "--timeout", "1h")...)
	if got.code != 6 || !strings.Contains(got.err, "condition Accepted is False, ServerNotAllowed") {
		t.Errorf("a server that the hub refuses: %+v", got)
	}
	// Correct, it is waited for until the hub works with what was just written.
	got = s.ok(t, waiting("prod-eu", "--context", "prod-eu")...)
	if !strings.HasSuffix(got.out, "prod-eu is ready\n") {
		t.Errorf("%+v", got)
	}
	s.severalOfWhichOneFails(t, f, waiting)
}

// severalOfWhichOneFails registers two of which one has no way for the hub, and then both.
func (s *cliSite) severalOfWhichOneFails(t *testing.T, f *fleet.Fleet, waiting func(...string) []string) {
	t.Helper()
	taken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Registrations, Name: "prod-us"}}
	if err := f.Hub.Client().Create(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	got := s.plimsoll(t, waiting("prod-eu", "prod-us")...)
	if lines := strings.Split(got.out, "\n"); got.code != 1 || !strings.Contains(got.err, "1 of 2 members are not registered") ||
		len(lines) != 4 || !strings.HasPrefix(lines[1], "prod-eu   ready ") || !strings.HasPrefix(lines[2], "prod-us   failed ") {
		t.Errorf("one of two fails: %+v", got)
	}
	if err := f.Hub.Client().Delete(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	got = s.ok(t, waiting("prod-eu", "prod-us")...)
	if strings.Count(got.out, "  ready ") != 2 {
		t.Errorf("both: %+v", got)
	}
}

// runHub runs a hub whose API people reach as in production: over TLS, with a token of an account that the chart creates.
func (s *cliSite) runHub(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	var address string
	if err := fleet.FreeAddresses(&address); err != nil {
		t.Fatal(err)
	}
	const viewer = "plimsoll-viewer"
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: viewer}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: viewer}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{auth.Group}, Resources: []string{"clusters"}, Verbs: []string{"get", "list"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: viewer}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: viewer},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: fleet.Namespace, Name: viewer}},
		},
	} {
		if err := f.Hub.Client().Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	startHub(t, f, "hub-a", fleet.Settings{"api.unauthenticated": false, "api.grpcAddress": address, "api.advertise": address})
	if err := fleet.Await(t.Context(), "the hub to publish its address", func(ctx context.Context) (bool, error) {
		var published corev1.ConfigMap
		err := f.Hub.Client().Get(ctx, client.ObjectKey{Namespace: fleet.Namespace, Name: "plimsoll-api-ca"}, &published)
		return published.Data["address"] == address, client.IgnoreNotFound(err)
	}); err != nil {
		t.Fatal(err)
	}
}
