package nodes_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
)

// A cloud whose agent announces the end of a node by a taint of its own, two minutes ahead.
func ExampleInterruptions_Of() {
	signs, err := nodes.NewInterruptions(nodes.Sign{Taint: "example.com/reclaimed", Within: 2 * time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	fmt.Println(signs.Of(node, time.Now()) != nil)

	node.Spec.Taints = []corev1.Taint{{Key: "example.com/reclaimed", Effect: corev1.TaintEffectNoSchedule}}
	fmt.Println(signs.Of(node, time.Now()).Notice)
	// Output:
	// false
	// taint example.com/reclaimed
}
