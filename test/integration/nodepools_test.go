package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// TestReservedCapacityOfANodePoolIsUsedBeforeItsFirstNode has a NodePool that can have reserved nodes and has none.
func TestReservedCapacityOfANodePoolIsUsedBeforeItsFirstNode(t *testing.T) {
	fleets.beside(t)
	f := startFleetWith(t, fleet.Options{Members: []string{"one"}, Nodes: fleet.NoNodes})
	m := f.Members[0]
	reservedPool(t, m)
	h := startHub(t, f, "node-pools")
	p := place(t, h, m, fleet.Enabled())

	const replicas = 4
	reserved := ContainElement(And(ContainSubstring("karpenter.sh/capacity-type In (on-demand, reserved)")))
	probe := p.create(fleet.Deployment(p.namespace, "first", 1, fleet.Policy(0, 0)))
	p.Eventually(func(g Gomega) []string { return p.shown(probe)(g).GetExplanation() }).Should(reserved)

	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(0, 0)))
	p.Eventually(func() []corev1.Pod { return p.pods(w) }).Should(HaveLen(replicas))
	_, err := m.Cluster.AddNodes(p.ctx, 1, kube.NodeSpec{Capacity: "reserved"})
	p.Expect(err).NotTo(HaveOccurred())
	_, err = w.AwaitReady(p.ctx, replicas)
	p.Expect(err).NotTo(HaveOccurred(), "no node but a reserved one is there")
}

// reservedPool makes a NodePool of reserved capacity, with a definition of the kind that has no more than the hub reads.
func reservedPool(t *testing.T, m *fleet.Member) {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definition := unstructuredOf(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		"nodepools.karpenter.sh", map[string]any{
			"group": "karpenter.sh", "scope": "Cluster",
			"names":    map[string]any{"kind": "NodePool", "listKind": "NodePoolList", "plural": "nodepools", "singular": "nodepool"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": anything}}},
		})
	g.Expect(m.Client().Create(t.Context(), definition)).To(Succeed())
	requirements := []any{map[string]any{"key": kube.CapacityLabel, "operator": "In", "values": []any{"on-demand", "reserved"}}}
	g.Eventually(func() error { // a definition takes a moment until it is served
		return m.Client().Create(t.Context(), unstructuredOf(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"},
			"general", map[string]any{"template": map[string]any{"spec": map[string]any{"requirements": requirements}}}))
	}).Should(Succeed())
}

func unstructuredOf(kind schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetGroupVersionKind(kind)
	made.SetName(name)
	return made
}
