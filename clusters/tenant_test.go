package clusters

import (
	"context"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// forNamespaces makes a registration one for named namespaces.
func forNamespaces(value string) func(*corev1.Secret) {
	return func(secret *corev1.Secret) { secret.Annotations[NamespacesAnnotation] = value }
}

// withNamespacesAndNodes has them cached as well.
func withNamespacesAndNodes(o *Options) {
	o.Kinds = append(o.Kinds, Kind{Object: &corev1.Namespace{}}, Kind{Object: &corev1.Node{}})
	o.Access = append(o.Access, Access{Resource: "nodes", Verbs: []string{"list"}, ClusterScoped: true}, Access{Resource: "namespaces", Verbs: []string{"get"}})
}

func TestNamespacesAreNamedByTheAnnotation(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ParseNamespaces("shop, cart,shop")).To(Equal([]string{"cart", "shop"}))
	for value, problem := range map[string]string{
		"": "one of them is empty", " ": "one of them is empty", "a,,b": "one of them is empty", "a,": "one of them is empty",
		"Shop": `namespace "Shop": a lowercase`, "a b": `namespace "a b"`, "a/b": `namespace "a/b"`, "*": `namespace "*"`,
	} {
		_, err := ParseNamespaces(value)
		g.Expect(err).To(MatchError(ContainSubstring(problem)), value)
		g.Expect(classify(err).reason).To(Equal(ReasonInvalidNamespaces))
	}
}

func TestATenantsMemberHoldsItsNamespacesOnlyAndListsNoOther(t *testing.T) {
	f, api := newFleet(t, withNamespacesAndNodes), newFakeAPI(t, "cluster-a")
	for _, namespace := range []string{"shop", "cart", "other"} {
		api.addPodIn(namespace, "pod-in-"+namespace)
	}
	f.secrets.put("a", api.kubeconfig(), forNamespaces("shop,cart"))
	member := f.awaitReady("a")
	f.g.Expect(member.Namespaces()).To(Equal([]string{"cart", "shop"}))
	f.g.Expect(member.Status().Namespaces).To(Equal([]string{"cart", "shop"}))

	ctx, c := context.Background(), member.GetClient()
	var pods corev1.PodList
	f.g.Expect(c.List(ctx, &pods)).To(Succeed())
	f.g.Expect(namesOf(pods.Items)).To(Equal([]string{"pod-in-cart", "pod-in-shop"}))
	f.g.Expect(c.List(ctx, &pods, client.InNamespace("shop"))).To(Succeed())
	f.g.Expect(namesOf(pods.Items)).To(Equal([]string{"pod-in-shop"}))
	f.g.Expect(c.List(ctx, &pods, client.MatchingFields{"app": "pod-in-cart"})).To(Succeed())
	f.g.Expect(namesOf(pods.Items)).To(Equal([]string{"pod-in-cart"}), "indexes work in all parts")
	for at, found := range map[[2]string]int{{"cart", "pod-in-cart"}: 1, {"shop", "pod-in-cart"}: 0, {"shop", "pod-in-shop"}: 1} {
		shared, err := member.ByIndex(ctx, &corev1.Pod{}, "app", at[0], at[1])
		f.g.Expect(err).NotTo(HaveOccurred())
		f.g.Expect(shared).To(HaveLen(found), "%v, uncopied", at)
	}
	f.g.Expect(c.List(ctx, &pods, client.InNamespace("other"))).To(Succeed())
	f.g.Expect(pods.Items).To(BeEmpty())
	f.g.Expect(c.Get(ctx, types.NamespacedName{Namespace: "cart", Name: "pod-in-cart"}, &corev1.Pod{})).To(Succeed())
	f.g.Expect(apierrors.IsNotFound(c.Get(ctx, types.NamespacedName{Namespace: "other", Name: "pod-in-other"}, &corev1.Pod{}))).To(BeTrue())
	f.g.Expect(c.Get(ctx, types.NamespacedName{Name: "shop"}, &corev1.Namespace{})).To(Succeed())
	f.g.Expect(apierrors.IsNotFound(c.Get(ctx, types.NamespacedName{Name: "other"}, &corev1.Namespace{}))).To(BeTrue())
	var namespaces corev1.NamespaceList
	f.g.Expect(c.List(ctx, &namespaces)).To(Succeed())
	f.g.Expect(namespaces.Items).To(HaveLen(2))

	f.g.Expect(api.count("GET /api/v1/pods")).To(BeZero())
	f.g.Expect(api.count("GET /api/v1/configmaps")).To(BeZero())
	f.g.Expect(api.count("GET /api/v1/namespaces/other")).To(BeZero())
	f.g.Expect(api.count("GET /api/v1/nodes")).NotTo(BeZero(), "nodes have no namespace")
	api.mu.Lock()
	defer api.mu.Unlock()
	f.g.Expect(api.reviewed).To(ContainElements(
		"create pods  in shop", "create pods  in cart", "list nodes  in ", "get namespaces shop in ", "get namespaces cart in ", "watch pods  in shop",
	))
	f.g.Expect(api.reviewed).NotTo(ContainElement("watch pods  in "))
}

func namesOf(pods []corev1.Pod) []string {
	names := make([]string, len(pods))
	for i := range pods {
		names[i] = pods[i].Name
	}
	return names
}

func TestHandlersHearOfEveryNamespaceOfATenantUntilTheyAreRemoved(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	api.addPodIn("shop", "one")
	api.addPodIn("cart", "two")
	f.secrets.put("a", api.kubeconfig(), forNamespaces("shop,cart"))
	informer, err := f.awaitReady("a").GetCache().GetInformer(context.Background(), &corev1.Pod{})
	f.g.Expect(err).NotTo(HaveOccurred())
	f.g.Expect(informer.HasSynced()).To(BeTrue())
	heard := make(chan string, 10)
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { heard <- obj.(*corev1.Pod).Name },
	})
	f.g.Expect(err).NotTo(HaveOccurred())
	f.g.Eventually(handle.HasSynced).Should(BeTrue())
	f.g.Eventually(handle.HasSyncedChecker().Done()).Should(BeClosed())
	f.g.Expect([]string{<-heard, <-heard}).To(ConsistOf("one", "two"))
	known := informer.(interface {
		GetByKey(string) (any, bool, error)
	})
	for key, want := range map[string]bool{"shop/one": true, "cart/two": true, "cart/one": false} {
		_, exists, err := known.GetByKey(key)
		f.g.Expect(err).NotTo(HaveOccurred())
		f.g.Expect(exists).To(Equal(want), key)
	}
	f.g.Expect(informer.RemoveEventHandler(handle)).To(Succeed())
}

func TestANamespaceThatIsForbiddenIsLeftOutUntilItIsNot(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	api.addPodIn("shop", "one")
	api.addPodIn("cart", "two")
	api.fault("/api/v1/namespaces/cart/pods", 403)
	api.deny("create pods in cart", true)
	f.secrets.put("a", api.kubeconfig(), forNamespaces("shop,cart"))
	f.g.Eventually(f.state("a")).Should(Equal("Degraded/" + ReasonNotPermitted))
	status, _ := f.Status("a")
	f.g.Expect(status.Message).To(Equal("not permitted: create pods in namespace cart (nothing can be made)"))
	member := f.member("a")
	visible := func() []string {
		var pods corev1.PodList
		f.g.Expect(member.GetClient().List(context.Background(), &pods)).To(Succeed(), "what is permitted is cached at every moment")
		return namesOf(pods.Items)
	}
	f.g.Expect(visible()).To(Equal([]string{"one"}))

	api.fault("/api/v1/namespaces/cart/pods", 0)
	api.deny("create pods in cart", false)
	f.g.Eventually(visible).Should(Equal([]string{"two", "one"}), "cart has come, without another being lost")
	f.g.Eventually(f.state("a")).Should(Equal("Ready/Ready"))

	api.fault("/api/v1/namespaces/cart/pods", 403)
	f.g.Eventually(visible).Should(Equal([]string{"one"}), "and has gone")
	f.g.Expect(f.member("a")).To(BeIdenticalTo(member))
}

func TestChangedNamespacesAreProvenBesideTheRunningMember(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	api.addPodIn("shop", "one")
	api.addPodIn("cart", "two")
	f.secrets.put("a", api.kubeconfig(), forNamespaces("shop"))
	former := f.awaitReady("a")
	f.secrets.put("a", api.kubeconfig(), forNamespaces("cart,Shop"))
	f.g.Eventually(f.condition("a", ConditionAccepted)).Should(Equal("False/" + ReasonInvalidNamespaces))
	f.g.Eventually(f.events.with("a Warning/" + ReasonInvalidNamespaces)).Should(Equal(1))
	f.g.Expect(f.member("a")).To(BeIdenticalTo(former), "a value that cannot be used changes nothing")
	f.g.Expect(f.state("a")()).To(Equal("Ready/Ready"))

	f.secrets.put("a", api.kubeconfig(), forNamespaces("cart,shop"))
	f.g.Eventually(func() []string { return f.member("a").Namespaces() }).Should(Equal([]string{"cart", "shop"}))
	var pods corev1.PodList
	f.g.Expect(f.awaitReady("a").GetClient().List(context.Background(), &pods)).To(Succeed())
	f.g.Expect(pods.Items).To(HaveLen(2))
	f.g.Eventually(f.aware.live("a")).Should(Equal(1))
}

func TestARegistrationWithBadNamespacesIsRefused(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	f.secrets.put("a", api.kubeconfig(), forNamespaces(""))
	f.g.Eventually(f.state("a")).Should(Equal("Refused/" + ReasonInvalidNamespaces))
	f.g.Eventually(f.events.with("a Warning/" + ReasonInvalidNamespaces)).Should(Equal(1))
	f.g.Expect(api.count("GET ")).To(BeZero(), "nobody was asked")
}

func TestOneClusterIsRegisteredForSeveralTenants(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	f.secrets.put("a", api.kubeconfig(), forNamespaces("shop,cart"))
	f.awaitReady("a")
	f.secrets.put("b", api.kubeconfig(), forNamespaces("pay"))
	f.awaitReady("b")
	f.secrets.put("c", api.kubeconfig(), forNamespaces("cart,bank"))
	f.g.Eventually(f.state("c")).Should(Equal("Refused/" + ReasonOverlappingNamespaces))
	status, _ := f.Status("c")
	f.g.Expect(status.Message).To(Equal("namespace cart of the same cluster is registered by an older Secret"))
	f.secrets.put("d", api.kubeconfig())
	f.g.Eventually(f.state("d")).Should(Equal("Refused/" + ReasonOverlappingNamespaces))
	f.secrets.put("a", api.kubeconfig(), forNamespaces("shop"))
	f.awaitReady("c")
	f.g.Expect(f.state("b")()).To(Equal("Ready/Ready"))
}

func TestTenantsOfAClusterThatDoesNotTellItsUIDAreKnownByItsAddress(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	api.fault("/api/v1/namespaces/kube-system", 403)
	f.secrets.put("a", api.kubeconfig(), forNamespaces("shop"))
	f.awaitReady("a")
	f.secrets.put("b", api.kubeconfig(), forNamespaces("shop"))
	f.g.Eventually(f.state("b")).Should(Equal("Refused/" + ReasonOverlappingNamespaces))
	f.secrets.put("c", api.kubeconfig(), forNamespaces("pay"))
	f.awaitReady("c")
}

func TestATenantHasAnObjectOfItsOwnWhereOneIsNamed(t *testing.T) {
	g := NewWithT(t)
	kind := declaredKind{Kind: Kind{PerTenant: true, Fields: fields.OneTermEqualSelector("metadata.name", "plimsoll")}}
	access := []Access{{Resource: "things", Name: "plimsoll", PerTenant: true, ClusterScoped: true}}
	g.Expect(kind.ofTenant("team", []string{"shop"}).Fields.String()).To(Equal("metadata.name=plimsoll-team"))
	g.Expect(questionsOf(access, "team", []string{"shop"})[0].Name).To(Equal("plimsoll-team"))
	g.Expect(kind.ofTenant("team", nil).Fields.String()).To(Equal("metadata.name=plimsoll"))
	g.Expect(questionsOf(access, "team", nil)[0].Name).To(Equal("plimsoll"))
	kind.PerTenant = false
	g.Expect(kind.ofTenant("team", []string{"shop"}).Fields.String()).To(Equal("metadata.name=plimsoll"))
	g.Expect(slices.ContainsFunc(questionsOf([]Access{{Resource: "pods"}}, "team", []string{"a", "b"}), func(q question) bool {
		return strings.Contains(q.describe("get"), "get pods in namespace b")
	})).To(BeTrue())
}
