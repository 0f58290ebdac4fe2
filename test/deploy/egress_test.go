package deploy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What the hub may call is open unless it was said, because a hub that does not reach its own cluster does not start.
func TestTheHubMayCallOnlyWhomTheValuesName(t *testing.T) {
	for values, want := range map[string][]any{
		"": nil,
		"networkPolicy: {egress: {enabled: true, to: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [6443]}}": {
			map[string]any{
				"to":    []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.0/8"}}},
				"ports": []any{map[string]any{"protocol": "TCP", "port": int64(6443)}},
			},
		},
	} {
		for _, policy := range render(t, values).Kind("NetworkPolicy") {
			egress, _, err := unstructured.NestedSlice(policy.Object, "spec", "egress")
			if err != nil {
				t.Fatal(err)
			}
			types, _, _ := unstructured.NestedStringSlice(policy.Object, "spec", "policyTypes")
			if bounded := len(types) == 2 && types[1] == "Egress"; bounded != (want != nil) {
				t.Errorf("%q: the policy is about %v", values, types)
			}
			if want != nil {
				egress = egress[:1] // then the other replicas, and names
			}
			if diff := cmp.Diff(want, egress); diff != "" {
				t.Errorf("%q (-want +got):\n%s", values, diff)
			}
		}
	}
}
