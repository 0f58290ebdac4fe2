package clusters

import (
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/caching"
)

func keepLabels(from, into client.Object)      { into.SetLabels(from.GetLabels()) }
func keepAnnotations(from, into client.Object) { into.SetAnnotations(from.GetAnnotations()) }
func byName(o client.Object) []string          { return []string{o.GetName()} }
func byNamespace(o client.Object) []string     { return []string{o.GetNamespace()} }

func fullPod() *corev1.Pod {
	now := metav1.NewTime(time.Unix(1000, 0))
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "default", UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: now, DeletionTimestamp: &now,
			OwnerReferences: []metav1.OwnerReference{{Name: "rs"}}, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
			Finalizers: []string{"f"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func TestATrimmedObjectHoldsItsIdentityAndWhatIsKept(t *testing.T) {
	g := NewWithT(t)
	from := fullPod()
	want := &corev1.Pod{TypeMeta: from.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "default", UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: from.CreationTimestamp,
		DeletionTimestamp: from.DeletionTimestamp, OwnerReferences: from.OwnerReferences, Labels: from.Labels,
	}}
	once, err := caching.Trim(keepLabels)(from)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(once).To(Equal(want))
	twice, err := caching.Trim(keepLabels)(once)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(twice).To(Equal(want), "informers may trim an object again")
}

func TestWithoutKeepOnlyManagedFieldsGo(t *testing.T) {
	g := NewWithT(t)
	want := fullPod()
	want.ManagedFields = nil
	g.Expect(caching.Trim(nil)(fullPod())).To(Equal(want))
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "default/web"}
	g.Expect(caching.Trim(nil)(tombstone)).To(Equal(tombstone))
}

func TestMergedKindsKeepWhatAnyControllerReads(t *testing.T) {
	g := NewWithT(t)
	merged, err := MergeKinds(
		[]Kind{{Object: &corev1.Pod{}, Keep: keepLabels, Indexes: map[string]client.IndexerFunc{"name": byName}, Optional: true}, {Object: &appsv1.Deployment{}, Keep: keepLabels}},
		[]Kind{{Object: &corev1.Pod{}, Keep: keepAnnotations, Indexes: map[string]client.IndexerFunc{"name": byName, "namespace": byNamespace}}, {Object: &appsv1.Deployment{}}},
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(merged).To(HaveLen(2))
	pods, deployments := merged[0], merged[1]
	g.Expect(pods.Indexes).To(HaveLen(2))
	g.Expect(pods.Optional).To(BeFalse(), "one controller needs it")
	kept, err := caching.Trim(pods.Keep)(fullPod())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept.(*corev1.Pod).Labels).NotTo(BeEmpty())
	g.Expect(kept.(*corev1.Pod).Annotations).NotTo(BeEmpty())
	g.Expect(kept.(*corev1.Pod).Spec.NodeName).To(BeEmpty())
	g.Expect(deployments.Keep).To(BeNil(), "one controller reads all of it")
}

func TestKindsThatContradictEachOtherAreAnError(t *testing.T) {
	g := NewWithT(t)
	spot := labels.SelectorFromSet(labels.Set{"slot": "0"})
	for problem, second := range map[string]Kind{
		"label selectors": {Object: &corev1.Pod{}, Labels: spot},
		`named "name"`:    {Object: &corev1.Pod{}, Indexes: map[string]client.IndexerFunc{"name": byNamespace}},
		"an API version":  {Object: &unstructured.Unstructured{}},
		"Go type":         {Object: &metav1.PartialObjectMetadata{}},
		"Object":          {},
	} {
		_, err := MergeKinds([]Kind{{Object: &corev1.Pod{}, Indexes: map[string]client.IndexerFunc{"name": byName}}}, []Kind{second})
		g.Expect(err).To(MatchError(ContainSubstring(problem)))
	}
	_, err := MergeKinds([]Kind{{Object: &corev1.Pod{}, Labels: spot}, {Object: &corev1.Pod{}, Labels: labels.SelectorFromSet(labels.Set{"slot": "0"})}})
	g.Expect(err).NotTo(HaveOccurred(), "equal selectors")
}

func TestACacheIsRestrictedToWhatIsNeededWhileNobodyNeedsMore(t *testing.T) {
	g := NewWithT(t)
	fewer := Kind{Object: &corev1.Pod{}, Needed: fields.OneTermNotEqualSelector("metadata.namespace", "kube-system")}
	merged, err := MergeKinds([]Kind{fewer}, []Kind{fewer})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(merged[0].Needed.String()).To(Equal("metadata.namespace!=kube-system"))
	for _, declared := range [][]Kind{{fewer, {Object: &corev1.Pod{}}, fewer}, {{Object: &corev1.Pod{}}, fewer}} {
		merged, err := MergeKinds(declared)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(merged[0].Needed).To(BeNil(), "one controller reads all of them")
	}
}

func TestMergingChangesNoDeclaration(t *testing.T) {
	g := NewWithT(t)
	first := []Kind{{Object: &corev1.Pod{}, Indexes: map[string]client.IndexerFunc{"name": byName}}}
	_, err := MergeKinds(first, []Kind{{Object: &corev1.Pod{}, Indexes: map[string]client.IndexerFunc{"namespace": byNamespace}}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first[0].Indexes).To(HaveLen(1))
}

func TestACompanionKindDegradesNobody(t *testing.T) {
	for name, kind := range map[string]kindReport{
		"missing":   {KindStatus: KindStatus{Reason: reasonNotFound}, optional: true, companion: true},
		"forbidden": {KindStatus: KindStatus{Reason: reasonForbidden}, optional: true, companion: true},
	} {
		if missing := missingKinds(&report{kinds: []kindReport{kind}}); missing != "" {
			t.Errorf("a companion that is %s: %s", name, missing)
		}
	}
	if missingKinds(&report{kinds: []kindReport{{KindStatus: KindStatus{Reason: reasonForbidden}, optional: true}}}) == "" {
		t.Error("an optional kind that is forbidden is reported")
	}
}

func TestAnObjectThatCannotBeTrimmedCostsItsKindInItsMemberOnly(t *testing.T) {
	f := newFleet(t, func(o *Options) {
		o.Kinds = []Kind{{Object: &corev1.Pod{}, Keep: func(from, into client.Object) {
			_ = from.GetLabels()["app"][3] // one object with a short label is enough
			into.SetLabels(from.GetLabels())
		}}, configMapKind}
	})
	hostile, api := newFakeAPI(t, "hostile"), newFakeAPI(t, "a")
	hostile.addPod("web")
	api.addPod("website")
	f.secrets.put("hostile", hostile.kubeconfig())
	f.secrets.put("a", api.kubeconfig())
	f.awaitReady("a")
	f.g.Eventually(f.state("hostile")).Should(Equal("Degraded/KindsMissing"))
	status, _ := f.Status("hostile")
	f.g.Expect(status.Kinds).To(Equal([]KindStatus{{Kind: "v1 Pod", Reason: "Failed"}, {Kind: "v1 ConfigMap", Engaged: true}}))
	f.g.Expect(f.log.String()).To(ContainSubstring(`"kind":"v1 Pod","object":"default/web","panic":"runtime error: index out of range [3] with length 3"`))
}

func TestAMemberIsAskedOnlyForWhatIsNeeded(t *testing.T) {
	f := newFleet(t, func(o *Options) {
		pods := podKind
		pods.Needed = fields.OneTermNotEqualSelector("metadata.namespace", "kube-system")
		o.Kinds = []Kind{pods, configMapKind}
	})
	api := newFakeAPI(t, "cluster-a")
	var mu sync.Mutex
	var asked []string
	api.answer("/api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Query().Get("fieldSelector"))
		mu.Unlock()
		if r.URL.Query().Get("watch") != "" {
			api.watch(w, r, r.Context().Done())
			return
		}
		api.listPods(w, "")
	})
	f.secrets.put("a", api.kubeconfig())
	f.awaitReady("a")
	mu.Lock()
	defer mu.Unlock()
	f.g.Expect(asked).To(HaveEach("metadata.namespace!=kube-system"))
	f.g.Expect(asked).NotTo(BeEmpty())
}
