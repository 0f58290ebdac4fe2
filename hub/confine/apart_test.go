package confine_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Pods that parts bring can have any Secret of their namespace in their environment, and a reconciler's ConfigMaps could configure the hub.
func TestNothingIsWrittenWhereTheHubKeepsItsKeys(t *testing.T) {
	a := account()
	a.Writes = []schema.GroupResource{{Resource: "configmaps"}}
	for suffix, namespace := range map[string]string{"webapps": "request.namespace", "kinds": `request.?namespace.orValue(\"\")`} {
		before := shown(t, a, suffix)
		with := a
		with.HubNamespaces = []string{a.Namespace, "plimsoll-members"}
		after := shown(t, with, suffix)
		if own := namespace + ` != \"plimsoll-system\"`; strings.Count(before, own) != 1 || strings.Count(after, own) != 1 {
			t.Errorf("policy %s does not exclude the account's namespace once: %s", suffix, after)
		}
		if others := namespace + ` != \"plimsoll-members\"`; strings.Contains(before, others) || !strings.Contains(after, others) {
			t.Errorf("policy %s excludes registrations in a cluster that has none, or not in that which has: %s", suffix, after)
		}
	}
}
