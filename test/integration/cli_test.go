package integration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// toRegister is the line that registers the member.
func toRegister(name string, more ...string) []string {
	return append([]string{"register", name, "--context", "member", "--hub-context", "hub"}, more...)
}

// TestRegisteringAMember goes through the life of a registration, in order: each part goes on from where the one before
// left the clusters.
func TestRegisteringAMember(t *testing.T) {
	fleets.beside(t)
	s := newCLISite(t)
	before := traces(t, s.member)
	inHub := traces(t, s.hub)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *cliSite)
	}{
		{"who may not gets an error, and nothing is changed", registerForbidden},
		{"a dry run changes nothing", registerDryRun},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, s) })
		if diff := cmp.Diff(before, traces(t, s.member)); diff != "" {
			t.Fatalf("%s: the member (-before +after):\n%s", part.name, diff)
		}
		if diff := cmp.Diff(inHub, traces(t, s.hub)); diff != "" {
			t.Fatalf("%s: the hub (-before +after):\n%s", part.name, diff)
		}
	}
	t.Run("the member is prepared and the hub gets a kubeconfig that it accepts", registered(s))
	t.Run("the hub may do what it needs, and nothing else", func(t *testing.T) { hubsRights(t, s) })
	t.Run("again changes nothing, and leaves what the hub wrote", func(t *testing.T) { registerAgain(t, s) })
	t.Run("names and clusters that are taken are refused", func(t *testing.T) { registerTaken(t, s) })
	t.Run("a token that expires can be asked for", func(t *testing.T) { registerExpiring(t, s) })
	t.Run("force-detach gives a member up, and takes it back", func(t *testing.T) { forceDetach(t, s) })
	t.Run("a member is cordoned and paused, and used again", func(t *testing.T) { cordonAndPause(t, s) })
	t.Run("a workload is paused and resumed", func(t *testing.T) { pauseWorkload(t, s) })
	t.Run("the hub's credentials are rotated", func(t *testing.T) { rotate(t, s) })
	t.Run("the hub's own cluster is registered", func(t *testing.T) { registerInCluster(t, s) })
	t.Run("unregister refuses another cluster", func(t *testing.T) { unregisterOther(t, s) })
	t.Run("unregister under a mistyped name changes nothing", func(t *testing.T) { unregisterMistyped(t, s) })
	t.Run("unregister keeps what is somebody else's", func(t *testing.T) { unregisterKeeps(t, s) })
	t.Run("WebApps are installed, and removed when there are none left", func(t *testing.T) { webAppsUninstalled(t, s) })
	t.Run("unregister leaves the member as it was", func(t *testing.T) {
		s.ok(t, toRegister("prod-eu")...)
		s.ok(t, "unregister", "prod-eu", "--context", "member", "--hub-context", "hub")
		NewWithT(t).Eventually(func() []string { return traces(t, s.member) }, memberPatience).Should(Equal(before))
		again := s.ok(t, "unregister", "prod-eu", "--context", "member", "--hub-context", "hub")
		if strings.Contains(again.out, "deleted") || !strings.Contains(again.out, "absent") {
			t.Errorf("unregistered twice:\n%s", again.out)
		}
	})
}

// ok runs a command line that must succeed.
func (s *cliSite) ok(t *testing.T, args ...string) ran {
	t.Helper()
	got := s.plimsoll(t, args...)
	if got.code != 0 {
		t.Fatalf("plimsoll %s: exit code %d\n%s%s", strings.Join(args, " "), got.code, got.out, got.err)
	}
	return got
}

func registerForbidden(t *testing.T, s *cliSite) {
	stranger, err := s.member.KubeconfigFor(t.Context(), "stranger")
	if err != nil {
		t.Fatal(err)
	}
	someRights := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:test-reader"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"", "rbac.authorization.k8s.io", "admissionregistration.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"get", "create", "patch"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "system:test-reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: someRights.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "stranger"}},
	}
	own := file(t, nil)
	s.write(t, own, stranger)
	refused := func(want string) {
		t.Helper()
		NewWithT(t).Eventually(func(g Gomega) { // new rights take a moment until an API server knows them
			got := s.plimsoll(t, toRegister("prod-eu", "--kubeconfig", own, "--hub-kubeconfig", s.kubeconfig)...)
			g.Expect(got.code).NotTo(BeZero(), got.out)
			g.Expect(got.err).To(ContainSubstring(want))
		}, memberPatience).Should(Succeed())
	}
	refused(`member (context "member"): read namespace/kube-system`)
	for _, o := range []client.Object{someRights, binding} {
		if err := s.member.Client().Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	refused("you may grant only rights that you have")
}

func registerDryRun(t *testing.T, s *cliSite) {
	got := s.ok(t, toRegister("prod-eu", "--dry-run")...)
	if !strings.Contains(got.out, "name: plimsoll-member") || !strings.Contains(got.out, "token: REDACTED") {
		t.Errorf("it shows\n%s", got.out)
	}
}

func registered(s *cliSite) func(*testing.T) {
	return func(t *testing.T) {
		got := s.ok(t, toRegister("prod-eu")...)
		if lines := strings.Count(got.out, "created"); lines != 35 {
			t.Errorf("%d objects were made, want 33 in the member and 2 in the hub:\n%s", lines, got.out)
		}
		secret := s.registered(t, "prod-eu")
		if secret == nil || secret.Labels[clusters.MemberLabel] != "true" {
			t.Fatalf("the registration is %v", secret)
		}
		if _, err := kubeconfig.Vet("prod-eu", secret.Data[clusters.KubeconfigKey], kubeconfig.Rules{AllowedNetworks: memberNetworks}); err != nil {
			t.Errorf("the hub refuses it: %v", err)
		}
		if _, ok := secret.Annotations["kubectl.kubernetes.io/last-applied-configuration"]; ok {
			t.Error("an annotation repeats the token")
		}
	}
}

func hubsRights(t *testing.T, s *cliSite) {
	config := s.asHub(t, "prod-eu")
	needed := append(spot.Access(), clusters.Access{
		Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Name: webhook.ConfigurationName,
		Verbs: []string{"get", "list", "watch", "patch", "update"},
	})
	for _, access := range needed {
		for _, verb := range access.Verbs {
			allowed, err := may(t.Context(), config, authorizationv1.ResourceAttributes{
				Group: access.Group, Resource: access.Resource, Subresource: access.Subresource, Name: access.Name, Verb: verb, Namespace: "shop",
			})
			if err != nil || !allowed {
				t.Errorf("%s %s/%s %s: %v, %v; the hub needs it", verb, access.Resource, access.Subresource, access.Name, allowed, err)
			}
		}
	}
	for _, denied := range []authorizationv1.ResourceAttributes{
		{Verb: "get", Resource: "secrets"}, {Verb: "list", Resource: "secrets"}, {Verb: "list", Resource: "configmaps"},
		{Verb: "delete", Resource: "pods"}, {Verb: "create", Resource: "pods"}, {Verb: "update", Resource: "pods"},
		{Verb: "create", Resource: "pods", Subresource: "exec"}, {Verb: "get", Resource: "pods", Subresource: "log"},
		{Verb: "patch", Resource: "nodes"}, {Verb: "patch", Group: "apps", Resource: "deployments"}, {Verb: "create", Resource: "serviceaccounts", Subresource: "token"},
		{Verb: "create", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
		{Verb: "delete", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Name: webhook.ConfigurationName},
		{Verb: "update", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Name: "istio"},
		{Verb: "list", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
		{Verb: "impersonate", Resource: "users"}, {Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	} {
		if allowed, err := may(t.Context(), config, denied); err != nil || allowed {
			t.Errorf("%s %s/%s %s: %v, %v; the hub has no use for it", denied.Verb, denied.Resource, denied.Subresource, denied.Name, allowed, err)
		}
	}
	// A list and a watch of one object by its name are granted by that name.
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", webhook.ConfigurationName).String()}
	list, err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().List(t.Context(), only)
	if err != nil || len(list.Items) != 1 {
		t.Errorf("list the webhook configuration: %v, %v", list, err)
	}
	watch, err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Watch(t.Context(), only)
	if err != nil {
		t.Fatalf("watch the webhook configuration: %v", err)
	}
	watch.Stop()
}

func registerAgain(t *testing.T, s *cliSite) {
	asHub, err := client.New(s.asHub(t, "prod-eu"), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	none, ignore, url := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Ignore, "https://127.0.0.1:1/x"
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := asHub.Get(t.Context(), client.ObjectKey{Name: webhook.ConfigurationName}, configuration); err != nil {
		t.Fatal(err)
	}
	configuration.Webhooks = []admissionregistrationv1.MutatingWebhook{{
		Name: "pods.plimsoll.dev", SideEffects: &none, FailurePolicy: &ignore, AdmissionReviewVersions: []string{"v1"},
		TimeoutSeconds: new(int32(2)), ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url},
	}}
	if err := asHub.Update(t.Context(), configuration); err != nil {
		t.Fatalf("the hub cannot keep its webhook configuration current: %v", err)
	}
	token := s.asHub(t, "prod-eu").BearerToken
	got := s.ok(t, toRegister("prod-eu")...)
	if strings.Count(got.out, "unchanged") != 35 {
		t.Errorf("something changed:\n%s", got.out)
	}
	if err := asHub.Get(t.Context(), client.ObjectKey{Name: webhook.ConfigurationName}, configuration); err != nil || len(configuration.Webhooks) != 1 {
		t.Errorf("what the hub wrote: %d webhooks, %v", len(configuration.Webhooks), err)
	}
	if s.asHub(t, "prod-eu").BearerToken != token {
		t.Error("the hub's token changed")
	}
}

func registerTaken(t *testing.T, s *cliSite) {
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Registrations, Name: "database"}, Data: map[string][]byte{"password": []byte("x")}}
	if err := s.hub.Client().Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"that is not a registration":            toRegister("database"),
		"that cluster is registered as prod-eu": toRegister("prod-us"),
		"prod-eu is another cluster":            {"register", "prod-eu", "--context", "hub", "--hub-context", "hub"},
		"the member and the hub are the same":   {"register", "self", "--context", "hub"},
		`no context "nowhere"`:                  {"register", "prod-us", "--context", "nowhere"},
	} {
		if got := s.plimsoll(t, args...); got.code == 0 || !strings.Contains(got.err, want) {
			t.Errorf("%s: %+v, want %q", strings.Join(args, " "), got, want)
		}
	}
	if secret := s.registered(t, "database"); secret == nil || string(secret.Data["password"]) != "x" || len(secret.Data) != 1 {
		t.Errorf("somebody else's Secret became %v", secret)
	}
}

func registerExpiring(t *testing.T, s *cliSite) {
	before := s.asHub(t, "prod-eu").BearerToken
	got := s.ok(t, toRegister("prod-eu", "--token-duration", "1h")...)
	if !strings.Contains(got.err, "expires at") {
		t.Errorf("nothing is said about its end: %s", got.err)
	}
	config := s.asHub(t, "prod-eu")
	if config.BearerToken == before {
		t.Error("the hub still has the other token")
	}
	if allowed, err := may(t.Context(), config, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}); err != nil || !allowed {
		t.Errorf("the token that expires: %v, %v", allowed, err)
	}
}

func unregisterOther(t *testing.T, s *cliSite) {
	got := s.plimsoll(t, "unregister", "prod-eu", "--context", "hub", "--hub-context", "hub")
	if got.code == 0 || !strings.Contains(got.err, "another cluster") || s.registered(t, "prod-eu") == nil {
		t.Errorf("got %+v, want a refusal and the registration as it was", got)
	}
	if got := s.plimsoll(t, "unregister", "database", "--hub-context", "hub", "--keep-member"); got.code == 0 || s.registered(t, "database") == nil {
		t.Errorf("a Secret that is no registration: %+v", got)
	}
}

func unregisterMistyped(t *testing.T, s *cliSite) {
	got := s.plimsoll(t, "unregister", "prod-eus", "--context", "member", "--hub-context", "hub")
	if got.code == 0 || !strings.Contains(got.err, "registered as prod-eu") {
		t.Errorf("got %+v, want a refusal that names the registration", got)
	}
	if allowed, err := may(t.Context(), s.asHub(t, "prod-eu"), authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}); err != nil || !allowed {
		t.Errorf("the hub's right in the member: %v, %v", allowed, err)
	}
}

func unregisterKeeps(t *testing.T, s *cliSite) {
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plimsoll-system", Name: "theirs"}}
	if err := s.member.Client().Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	got := s.ok(t, "unregister", "prod-eu", "--context", "member", "--hub-context", "hub")
	if !strings.Contains(got.out, "namespace/plimsoll-system (configmap/theirs is in it)") || s.registered(t, "prod-eu") != nil {
		t.Errorf("it did\n%s", got.out)
	}
	if err := s.member.Client().Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Errorf("somebody else's ConfigMap: %v", err)
	}
	if err := s.member.Client().Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
}

// TestTheCLIAsksTheAPI goes from a kubeconfig of the hub cluster to a table, with a token that the CLI requests itself.
func TestTheCLIAsksTheAPI(t *testing.T) {
	fleets.beside(t)
	s := newHubSite(t)
	a := newAPISite(t, s.hub)
	a.account(t, "viewer")
	a.account(t, "nobody")
	a.grant(t, "viewer", rbacv1.PolicyRule{APIGroups: []string{auth.Group}, Resources: []string{"clusters", "workloads"}, Verbs: []string{"get", "list"}})
	environment := []string{"KUBECONFIG=" + s.kubeconfig, "PLIMSOLL_API=" + a.grpc, "PLIMSOLL_CA_FILE=" + file(t, a.ca)}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"clusters --service-account plimsoll-system/viewer", 0, "prod-eu   Ready"},
		{"workloads --service-account plimsoll-system/viewer -o json", 0, `"cluster": "prod-us"`},
		{"workload prod-eu shop/deploy/cart --service-account plimsoll-system/viewer", 0, "every replica is where it belongs"},
		{"requeue prod-eu shop/deploy/cart --service-account plimsoll-system/viewer", 3, "requeue on workloads.api.plimsoll.dev"},
		{"clusters --service-account plimsoll-system/nobody", 3, "list on clusters.api.plimsoll.dev"},
		{"clusters --service-account plimsoll-system/missing", 4, "serviceaccount/plimsoll-system/missing"},
		{"clusters", 3, "a bearer token is needed"},
		{"clusters --token nonsense", 3, "kubectl create token"},
		{"workload prod-xx shop/deploy/cart --service-account plimsoll-system/viewer", 4, `member "prod-xx"`},
		{"clusters --insecure-plaintext", 5, "leave --insecure-plaintext out"},
		{"clusters --ca-file= --tls-server-name other.example", 5, "--tls-server-name"},
	} {
		got := s.plimsollWith(t, environment, strings.Fields(c.args)...)
		if got.code != c.code || !strings.Contains(got.out+got.err, c.want) {
			t.Errorf("plimsoll %s: %+v, want exit code %d and %q", c.args, got, c.code, c.want)
		}
	}
	if got := s.plimsollWith(t, environment[:2], "clusters", "--token", "x"); got.code != 5 || !strings.Contains(got.err, "--ca-file") {
		t.Errorf("without the CA: %+v", got)
	}
}
