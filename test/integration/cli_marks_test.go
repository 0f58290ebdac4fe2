package integration

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

const readOnlyAnnotation = "plimsoll.dev/read-only"

// cordonAndPause marks the registered member, and takes that back.
func cordonAndPause(t *testing.T, s *cliSite) {
	before := s.registered(t, "prod-eu")
	steps := []struct{ line, annotation, value, says string }{
		{"cordon prod-eu", clusters.CordonedAnnotation, "true", "updated"},
		{"cordon prod-eu", clusters.CordonedAnnotation, "true", "unchanged"},
		{"uncordon prod-eu", clusters.CordonedAnnotation, "", "updated"},
		{"pause cluster prod-eu", readOnlyAnnotation, "true", "updated"},
		{"resume hub", readOnlyAnnotation, "true", "absent"},
		{"pause hub", readOnlyAnnotation, "true", "created"},
		{"pause hub", readOnlyAnnotation, "true", "unchanged"},
		{"resume hub", readOnlyAnnotation, "true", "paused by itself"},
		{"resume cluster prod-eu", readOnlyAnnotation, "", "updated"},
		{"pause hub", readOnlyAnnotation, "", "updated"},
		{"resume hub", readOnlyAnnotation, "", "updated"},
		{"resume hub", readOnlyAnnotation, "", "unchanged"},
	}
	for _, step := range steps {
		got := s.ok(t, append(strings.Fields(step.line), "--context", "hub")...)
		secret := s.registered(t, "prod-eu")
		if secret.Annotations[step.annotation] != step.value || !strings.Contains(got.out, step.says) {
			t.Errorf("%s: %s\nannotations %v", step.line, got.out, secret.Annotations)
		}
	}
	if after := s.registered(t, "prod-eu"); string(after.Data["kubeconfig"]) != string(before.Data["kubeconfig"]) {
		t.Error("the kubeconfig has changed")
	}
	if got := s.plimsoll(t, "cordon", "database", "--context", "hub"); got.code == 0 || !strings.Contains(got.err, "not a registration") {
		t.Errorf("a Secret that is no registration: %+v", got)
	}
	if got := s.plimsoll(t, "pause", "cluster", "nobody", "--context", "hub"); got.code == 0 || !strings.Contains(got.err, "nobody is not registered") {
		t.Errorf("%+v", got)
	}
}

// pauseWorkload annotates a Deployment of the member.
func pauseWorkload(t *testing.T, s *cliSite) {
	web := fleet.Deployment("default", "web", 0, nil)
	if err := s.member.Client().Create(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.member.Client().Delete(t.Context(), web); err != nil {
			t.Error(err)
		}
	}()
	for _, step := range []struct{ line, value string }{
		{"pause workload prod-eu deploy/web -n default --context member", "true"},
		{"pause workload prod-eu default/deployments.apps/web --context member", "true"},
		{"resume workload prod-eu deployment web -n default --context member", ""},
	} {
		s.ok(t, strings.Fields(step.line)...)
		if err := s.member.Client().Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
			t.Fatal(err)
		}
		if value := web.Annotations[fleet.Keys.Paused()]; value != step.value {
			t.Errorf("%s: the annotation is %q", step.line, value)
		}
	}
	for line, want := range map[string]string{
		"pause workload prod-eu deploy/none -n default --context member":             "none",
		"pause workload prod-eu rollout.example.com/web -n default --context member": "the cluster has no rollout.example.com",
		"pause workload prod-eu deploy/web -n default":                               `no context "prod-eu"`,
	} {
		if got := s.plimsoll(t, strings.Fields(line)...); got.code == 0 || !strings.Contains(got.err, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// rotate replaces the token of the member, and then all of them.
func rotate(t *testing.T, s *cliSite) {
	takes := func(secret *corev1.Secret) error {
		t.Helper()
		clients, err := kubernetes.NewForConfig(s.asHubWith(t, secret))
		if err != nil {
			t.Fatal(err)
		}
		_, err = clients.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{Limit: 1})
		return err
	}
	first := s.registered(t, "prod-eu")
	if got := s.plimsoll(t, "rotate", "prod-eu", "--context", "hub", "--hub-context", "hub"); got.code == 0 || !strings.Contains(got.err, "not the registered cluster") {
		t.Errorf("in the wrong cluster: %+v", got)
	}
	s.ok(t, "rotate", "prod-eu", "--context", "member", "--hub-context", "hub")
	second := s.registered(t, "prod-eu")
	if string(second.Data["kubeconfig"]) == string(first.Data["kubeconfig"]) {
		t.Error("the token is the same")
	}
	if err := takes(first); err != nil {
		t.Errorf("the old token: %v", err)
	}
	if err := takes(second); err != nil {
		t.Errorf("the new token: %v", err)
	}
	s.ok(t, "rotate", "prod-eu", "--context", "member", "--hub-context", "hub", "--revoke")
	if err := takes(s.registered(t, "prod-eu")); err != nil {
		t.Errorf("the token after a revocation: %v", err)
	}
	for _, old := range []*corev1.Secret{first, second} {
		NewWithT(t).Eventually(func() error { return takes(old) }, memberPatience).Should(MatchError(apierrors.IsUnauthorized, "unauthorized"),
			"a token after it was revoked; API servers remember for seconds what they took")
	}
	is, _ := kubeconfig.TokenOf(first.Data["kubeconfig"])
	if now, _ := kubeconfig.TokenOf(s.registered(t, "prod-eu").Data["kubeconfig"]); now.Life() != is.Life() {
		t.Errorf("the token lives for %s, and the first one did for %s", now.Life(), is.Life())
	}
}

// registerInCluster makes the hub cluster a member of its own.
func registerInCluster(t *testing.T, s *cliSite) {
	dry := s.ok(t, "register", "--in-cluster", "--context", "hub", "--dry-run")
	if !strings.Contains(dry.out, "server: https://kubernetes.default.svc") || !strings.Contains(dry.out, "name: in-cluster") {
		t.Errorf("it would apply\n%s", dry.out)
	}
	s.ok(t, "register", "--in-cluster", "--context", "hub")
	if at := s.asHub(t, "in-cluster").Host; at != "https://kubernetes.default.svc" {
		t.Errorf("the hub finds it at %s", at)
	}
	s.ok(t, "register", "in-cluster", "--in-cluster", "--context", "hub", "--server", s.hub.Config().Host) // nothing here resolves the other name
	clients, err := kubernetes.NewForConfig(s.asHub(t, "in-cluster"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{Limit: 1}); err != nil {
		t.Errorf("as the hub: %v", err)
	}
	s.ok(t, "unregister", "in-cluster", "--context", "hub", "--hub-context", "hub")
}
