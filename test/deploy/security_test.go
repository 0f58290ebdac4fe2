package deploy

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// onOpenShift is what values.yaml says for OpenShift, whose security context constraint restricted-v2 assigns the user itself.
const onOpenShift = "podSecurityContext: {runAsUser: null, runAsGroup: null}"

// testItsPodsAreRestricted has a real API server judge the hub's pod in a namespace that enforces the Pod Security Standard restricted. The
// constraint restricted-v2 of OpenShift is that standard, and refuses a user, a group or volumes of the host that a pod names itself.
func testItsPodsAreRestricted(t *testing.T, f *fleet.Fleet) {
	a := newApplier(t, f.Hub)
	enforcing, err := Parse("apiVersion: v1\nkind: Namespace\nmetadata: {name: restricted, labels: {pod-security.kubernetes.io/enforce: restricted}}\n" +
		"---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: plimsoll-hub, namespace: restricted}")
	if err != nil {
		t.Fatal(err)
	}
	a.applyAll(t, enforcing)
	try := func(name string, spec map[string]any) error {
		pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": spec}}
		pod.SetName(name)
		pod.SetNamespace("restricted")
		return f.Hub.Client().Create(t.Context(), pod, &client.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	for name, values := range map[string]string{"by-default": "", "on-openshift": onOpenShift} {
		if err := try(name, pod(t, render(t, values))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := try("refused", pod(t, render(t, "securityContext: {allowPrivilegeEscalation: true}"))); err == nil {
		t.Error("the namespace restricts nothing")
	}
	objects := render(t, onOpenShift)
	for _, context := range []any{pod(t, objects)["securityContext"], container(t, objects)["securityContext"]} {
		for _, field := range []string{"runAsUser", "runAsGroup", "fsGroup", "supplementalGroups"} {
			if value, set := context.(map[string]any)[field]; set {
				t.Errorf("on OpenShift the pod says %s: %v", field, value)
			}
		}
	}
}
