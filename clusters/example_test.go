package clusters_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// Controllers that need the same kind share one cache of it.
func ExampleMergeKinds() {
	byNode := map[string]client.IndexerFunc{"spec.nodeName": func(object client.Object) []string {
		return []string{object.(*corev1.Pod).Spec.NodeName}
	}}
	one := []clusters.Kind{{Object: &corev1.Pod{}}, {Object: &appsv1.Deployment{}, Optional: true}}
	other := []clusters.Kind{{Object: &corev1.Pod{}, Indexes: byNode}, {Object: &appsv1.Deployment{}}}
	merged, err := clusters.MergeKinds(one, other)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, kind := range merged {
		fmt.Printf("%T: %d indexes, optional %t\n", kind.Object, len(kind.Indexes), kind.Optional)
	}

	// A cache has one selector.
	_, err = clusters.MergeKinds(one, []clusters.Kind{{Object: &corev1.Pod{}, Labels: labels.SelectorFromSet(labels.Set{"app": "web"})}})
	fmt.Println(err)
	// Output:
	// *v1.Pod: 1 indexes, optional false
	// *v1.Deployment: 0 indexes, optional false
	// declare kind v1.Pod to cache: label selectors "" and "app=web" differ
}

// The annotation of a registration Secret that registers a member for some namespaces only.
func ExampleParseNamespaces() {
	fmt.Println(clusters.ParseNamespaces("shop, api,shop"))
	_, err := clusters.ParseNamespaces("shop,Api")
	fmt.Println(err != nil)
	// Output:
	// [api shop] <nil>
	// true
}
