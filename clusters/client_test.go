package clusters

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// joined gives a fleet with one ready member that has the pod default/web.
func joined(t *testing.T) (*fleet, *fakeAPI, *Member) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	api.addPod("web")
	f.secrets.put("a", api.kubeconfig())
	return f, api, f.awaitReady("a")
}

func TestTheCacheHoldsWhatTheKindKeepsAndServesItsIndexes(t *testing.T) {
	f, _, member := joined(t)
	ctx := context.Background()
	var pod corev1.Pod
	f.g.Expect(member.GetClient().Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, &pod)).To(Succeed())
	f.g.Expect(pod.Labels).To(HaveKeyWithValue("app", "web"))
	f.g.Expect(string(pod.UID)).To(Equal("uid-web"))
	f.g.Expect(pod.ResourceVersion).To(Equal("5"))
	f.g.Expect(pod.Annotations).To(BeEmpty())
	f.g.Expect(pod.Spec.NodeName).To(BeEmpty())

	var pods corev1.PodList
	f.g.Expect(member.GetClient().List(ctx, &pods, client.MatchingFields{"app": "web"})).To(Succeed())
	f.g.Expect(pods.Items).To(HaveLen(1))
	f.g.Expect(member.GetClient().List(ctx, &pods, client.MatchingFields{"app": "other"})).To(Succeed())
	f.g.Expect(pods.Items).To(BeEmpty())
}

func TestAnIndexIsReadWithoutCopies(t *testing.T) {
	f, _, member := joined(t)
	ctx := context.Background()
	read := func(namespace, app string) []any {
		t.Helper()
		found, err := member.ByIndex(ctx, &corev1.Pod{}, "app", namespace, app)
		f.g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	first, again := read("default", "web"), read("default", "web")
	f.g.Expect(first).To(HaveLen(1))
	f.g.Expect(first[0]).To(BeIdenticalTo(again[0]), "the object that the cache holds")
	f.g.Expect(first[0].(*corev1.Pod).Name).To(Equal("web"))
	f.g.Expect(read("default", "other")).To(BeEmpty())
	f.g.Expect(read("other", "web")).To(BeEmpty())
	_, err := member.ByIndex(ctx, &corev1.Pod{}, "none", "default", "web")
	f.g.Expect(err).To(MatchError(ContainSubstring("does not exist")))
	_, err = member.ByIndex(ctx, &appsv1.StatefulSet{}, "app", "default", "web")
	var notWarm *NotWarmError
	f.g.Expect(errors.As(err, &notWarm)).To(BeTrue(), "%v", err)
}

func TestUpdatesOfTrimmedKindsAreRefusedAndPatchesPass(t *testing.T) {
	f, api, member := joined(t)
	ctx, c := context.Background(), member.GetClient()
	pod := &corev1.Pod{}
	f.g.Expect(c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, pod)).To(Succeed())
	for what, err := range map[string]error{
		"update":        c.Update(ctx, pod.DeepCopy()),
		"status update": c.Status().Update(ctx, pod.DeepCopy()),
		"subresource":   c.SubResource("ephemeralcontainers").Update(ctx, pod.DeepCopy()),
	} {
		f.g.Expect(errors.Is(err, ErrTrimmed)).To(BeTrue(), "%s: %v", what, err)
		f.g.Expect(err).To(MatchError(ContainSubstring("member a: update v1 Pod")))
	}
	f.g.Expect(api.count("PUT")).To(BeZero())

	before := pod.DeepCopy()
	pod.Labels["slot"] = "0"
	f.g.Expect(c.Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
	f.g.Expect(c.SubResource("eviction").Create(ctx, before, &policyv1.Eviction{})).To(Succeed())
	f.g.Expect(c.SubResource("scale").Update(ctx, before, client.WithSubResourceBody(&autoscalingv1.Scale{}))).To(Succeed(), "it has a body of its own")
	f.g.Expect(c.Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "whole"}})).To(Succeed(), "it is not trimmed")
	whole := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	whole.SetName("web")
	whole.SetNamespace("default")
	f.g.Expect(c.Update(ctx, whole)).To(Succeed(), "untyped objects are read live, so they are whole")
}

func TestAReadThatTheCacheCannotServeSaysSo(t *testing.T) {
	f, _, member := joined(t)
	ctx := context.Background()
	err := member.GetClient().List(ctx, &appsv1.DeploymentList{})
	var notWarm *NotWarmError
	f.g.Expect(errors.As(err, &notWarm)).To(BeTrue(), "error: %v", err)
	f.g.Expect(*notWarm).To(Equal(NotWarmError{Member: "a", Kind: "apps/v1 Deployment", Reason: "NotDeclared"}))
	f.g.Expect(notWarm).To(MatchError(ContainSubstring("declare it with Owns, Watches or Uses")))
	err = member.GetClient().Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, &appsv1.Deployment{})
	f.g.Expect(err).To(MatchError(And(ContainSubstring("apps/v1 Deployment"), ContainSubstring("declare it with Owns, Watches or Uses"))))
	_, err = member.GetCache().GetInformer(ctx, &appsv1.Deployment{})
	f.g.Expect(errors.As(err, &notWarm)).To(BeTrue(), "error: %v", err)
	f.g.Expect(member.Has(&appsv1.Deployment{})).To(BeFalse())

	partial := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	f.g.Expect(member.GetClient().Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, partial)).
		To(MatchError(ContainSubstring("it is cached as *v1.Pod, not *v1.PartialObjectMetadata")))
	f.g.Expect(member.GetCache().RemoveInformer(ctx, &corev1.Pod{})).To(MatchError(ContainSubstring("kept by the member")))
}

func TestTheFenceStopsTheClientOfAMemberThatIsOwnedElsewhere(t *testing.T) {
	f, api, member := joined(t)
	ctx := context.Background()
	f.fence.set("a", true)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "new"}}
	err := member.GetClient().Create(ctx, pod)
	f.g.Expect(errors.Is(err, ErrNotOwner)).To(BeTrue(), "error: %v", err)
	f.g.Expect(member.GetClient().List(ctx, &corev1.PodList{})).To(Succeed())
	f.g.Expect(member.Live().List(ctx, &corev1.PodList{})).To(Succeed())
	f.g.Expect(api.count("POST /api/v1/namespaces/default/pods")).To(BeZero())
	f.g.Expect(f.metric("plimsoll_member_requests_total{class=write,code=fenced,member=a}")()).To(Equal(1.0))
	f.fence.set("a", false)
	f.g.Expect(member.GetClient().Create(ctx, pod)).To(Succeed())
}

func TestAnIndexIsAddedToMembersThatAreThereAndToThoseThatCome(t *testing.T) {
	f, api, member := joined(t)
	ctx := context.Background()
	byApp := func(o client.Object) []string { return []string{o.GetLabels()["app"]} }
	f.g.Expect(f.IndexField(ctx, &corev1.Pod{}, "again", byApp)).To(Succeed())
	found := func(m *Member) int {
		var pods corev1.PodList
		f.g.Expect(m.GetClient().List(ctx, &pods, client.MatchingFields{"again": "web"})).To(Succeed())
		return len(pods.Items)
	}
	f.g.Expect(found(member)).To(Equal(1))

	other := newFakeAPI(t, "cluster-b")
	other.addPod("web")
	f.secrets.put("b", other.kubeconfig())
	f.g.Expect(found(f.awaitReady("b"))).To(Equal(1))

	api.fault("/api/v1/pods", 404) // a kind that comes back has its indexes again
	f.g.Eventually(f.state("a")).Should(Equal("Degraded/KindsMissing"))
	api.fault("/api/v1/pods", 0)
	f.g.Expect(found(f.awaitReady("a"))).To(Equal(1))

	f.g.Expect(f.IndexField(ctx, &corev1.Pod{}, "again", byApp)).To(MatchError(ContainSubstring("exists")))
	f.g.Expect(f.IndexField(ctx, &corev1.Pod{}, "app", byApp)).To(MatchError(ContainSubstring("exists")))
	f.g.Expect(f.IndexField(ctx, &appsv1.Deployment{}, "x", byApp)).To(MatchError(ContainSubstring("not declared")))
}

// slow is an object that is decoded when the test lets it be.
type slow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Text decoding `json:"text"`
}

func (s *slow) DeepCopyObject() runtime.Object {
	c := *s
	return &c
}

// decoding is a text. Who decodes it says so on decodingBegan, and waits for decodingGoesOn.
type decoding string

var decodingBegan, decodingGoesOn = make(chan struct{}), make(chan struct{})

func (d *decoding) UnmarshalJSON([]byte) error {
	decodingBegan <- struct{}{}
	<-decodingGoesOn
	return nil
}

func TestAMembersLargeAnswersAreDecodedOneAtATime(t *testing.T) {
	gv := schema.GroupVersion{Group: "slow.example", Version: "v1"}
	own := runtime.NewScheme()
	own.AddKnownTypeWithName(gv.WithKind("Slow"), &slow{})
	metav1.AddToGroupVersion(own, gv)
	utilruntime.Must(scheme.AddToScheme(own))
	f := newFleet(t, func(o *Options) { o.Scheme, o.RequestTimeout, o.WriteTimeout = own, time.Minute, time.Minute })
	api := newFakeAPI(t, "cluster-a")
	api.answer("/apis/slow.example/v1", func(w http.ResponseWriter, _ *http.Request) {
		write(w, metav1.APIResourceList{GroupVersion: gv.String(), APIResources: []metav1.APIResource{{Name: "slows", Kind: "Slow"}}})
	})
	large := func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{"apiVersion": gv.String(), "kind": "Slow", "metadata": map[string]any{"name": "a"}, "text": strings.Repeat("a", 512<<10)})
	}
	api.answer("/apis/slow.example/v1/slows", large)
	api.answer("/apis/slow.example/v1/slows/a", large)
	f.secrets.put("a", api.kubeconfig())
	member := f.awaitReady("a")

	key := client.ObjectKey{Name: "a"}
	calls := []func() error{
		func() error { return member.Live().Get(t.Context(), key, &slow{}) },
		func() error { return member.GetClient().Create(t.Context(), &slow{}) },
		func() error { return member.GetAPIReader().Get(t.Context(), key, &slow{}) },
	}
	ended := make(chan error, len(calls))
	for _, call := range calls {
		go func() { ended <- call() }()
	}
	for range calls {
		f.g.Eventually(decodingBegan).Should(Receive())
		f.g.Consistently(decodingBegan, "100ms").ShouldNot(Receive(), "the others wait")
		decodingGoesOn <- struct{}{}
	}
	for range calls {
		f.g.Expect(<-ended).To(Succeed())
	}
}
