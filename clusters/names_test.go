package clusters

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

func TestAKindOfNamedObjectsIsListedOneByOne(t *testing.T) {
	f, api := newFleet(t, func(o *Options) {
		o.Kinds = append(o.Kinds, Kind{Object: &corev1.Namespace{}, Names: []string{"shop"}}, Kind{Object: &corev1.Namespace{}, Names: []string{"pay", "shop"}})
	}), newFakeAPI(t, "cluster-a")
	for _, namespace := range []string{"shop", "pay", "other"} {
		api.addPodIn(namespace, "pod-in-"+namespace)
	}
	f.secrets.put("a", api.kubeconfig())
	ctx, c := context.Background(), f.awaitReady("a").GetClient()
	for name, there := range map[string]bool{"shop": true, "pay": true, "other": false} {
		err := c.Get(ctx, types.NamespacedName{Name: name}, &corev1.Namespace{})
		f.g.Expect(err == nil).To(Equal(there), name)
		f.g.Expect(there || apierrors.IsNotFound(err)).To(BeTrue(), name)
	}
	var all corev1.NamespaceList
	f.g.Expect(c.List(ctx, &all)).To(Succeed())
	f.g.Expect(all.Items).To(HaveLen(2))
}

func TestNamedObjectsOfSeveralDeclarationsAreUnited(t *testing.T) {
	g := NewWithT(t)
	merged, err := MergeKinds([]Kind{{Object: &corev1.Node{}, Names: []string{"b", "a"}}}, []Kind{{Object: &corev1.Node{}, Names: []string{"c", "a"}}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(merged[0].Names).To(Equal([]string{"a", "b", "c"}))
	_, err = MergeKinds([]Kind{{Object: &corev1.Node{}}}, []Kind{{Object: &corev1.Node{}, Names: []string{"c"}}})
	g.Expect(err).To(MatchError(ContainSubstring(`one declaration is of the objects ["c"], and another of all`)))
}
