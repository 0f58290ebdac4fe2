package spot

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// labelledSelector selects what has the enabled label with any value: that of a WebApp's Deployment is "false" when it asks
// for no placement, and the Deployments of both are in one cache.
func labelledSelector(keys policy.Keys) labels.Selector {
	has, err := labels.NewRequirement(keys.Enabled(), selection.Exists, nil)
	if err != nil {
		panic(err) // NewKeys validated the prefix: a programming error
	}
	return labels.NewSelector().Add(*has)
}
