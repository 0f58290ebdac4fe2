package clusters

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func untyped(kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
}

// untypedPods has pods cached without their Go type.
func untypedPods(o *Options) {
	o.Kinds = []Kind{{Object: untyped("Pod"), Optional: true, Keep: func(from, into client.Object) { into.SetLabels(from.GetLabels()) }}, configMapKind}
}

func TestAKindWithoutAGoTypeIsCachedTrimmed(t *testing.T) {
	f, api := newFleet(t, untypedPods), newFakeAPI(t, "cluster-a")
	api.addPodIn("shop", "one")
	api.addPodIn("cart", "two")
	f.secrets.put("a", api.kubeconfig())
	f.secrets.put("tenant", newFakeAPI(t, "cluster-b").kubeconfig(), forNamespaces("shop"))
	member, ctx := f.awaitReady("a"), context.Background()
	f.awaitReady("tenant")

	pod := untyped("Pod")
	f.g.Expect(member.Has(pod)).To(BeTrue())
	f.g.Expect(member.GetCache().Get(ctx, types.NamespacedName{Namespace: "shop", Name: "one"}, pod)).To(Succeed())
	f.g.Expect(pod.GetLabels()).To(Equal(map[string]string{"app": "one"}))
	f.g.Expect(pod.GetUID()).To(BeEquivalentTo("uid-one"))
	f.g.Expect(pod.Object).NotTo(HaveKey("spec"))
	f.g.Expect(pod.GetAnnotations()).To(BeEmpty())
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "PodList"}}
	f.g.Expect(member.GetCache().List(ctx, list)).To(Succeed())
	f.g.Expect(list.Items).To(HaveLen(2))
	f.g.Expect(member.GetCache().List(ctx, &corev1.PodList{})).To(MatchError(ContainSubstring("it is cached as *unstructured.Unstructured")))
	f.g.Expect(member.GetClient().Update(ctx, pod)).To(MatchError(ErrTrimmed))

	informer, err := member.GetCache().GetInformer(ctx, untyped("Pod"))
	f.g.Expect(err).NotTo(HaveOccurred())
	heard := make(chan string, 10)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { heard <- obj.(*unstructured.Unstructured).GetName() }})
	f.g.Expect(err).NotTo(HaveOccurred())
	f.g.Expect([]string{<-heard, <-heard}).To(ConsistOf("one", "two"))
}

func TestAnOptionalKindMayBeMissingButNotForbidden(t *testing.T) {
	f, api := newFleet(t, untypedPods), newFakeAPI(t, "cluster-a")
	api.fault("/api/v1/pods", 404)
	f.secrets.put("a", api.kubeconfig())
	f.awaitReady("a")
	api.fault("/api/v1/pods", 403)
	f.g.Eventually(f.state("a")).Should(Equal("Degraded/" + ReasonKindsMissing))
	api.fault("/api/v1/pods", 0)
	f.g.Eventually(func() bool { return f.awaitReady("a").Has(untyped("Pod")) }).Should(BeTrue(), "it joins when it is there")
}
