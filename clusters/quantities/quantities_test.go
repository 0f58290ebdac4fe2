package quantities_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

var paths = quantities.NewPaths(scheme.Scheme)

func TestAQuantityIsBoundedAndKeepsItsMeaning(t *testing.T) {
	for text, want := range map[string]string{
		"1e-2147483647": "1e-0000000099", "1E2147483647": "1E0000000099", "-1.5e+100": "-1.5e+099", "1e-00000000000000000000003": "1e-00000000000000000000003",
		"1e99": "1e99", "0.000000001": "0.000000001", "100m": "100m", "2Gi": "2Gi", "3E": "3E", "1e": "1e", "12e34x56789": "12e34x56789",
		" 1e-2147483647\t": " 1e-0000000099\t", "1e2147483647\u0085": "1e0000000099\u0085",
		strings.Repeat("9", 65): strings.Repeat("0", 65), strings.Repeat("9", 64): strings.Repeat("9", 64),
	} {
		got := []byte(text)
		quantities.Clamp(got)
		NewWithT(t).Expect(string(got)).To(Equal(want), text)
		if parsed, err := resource.ParseQuantity(string(got)); err == nil && len(text) < 8 {
			NewWithT(t).Expect(parsed.Cmp(resource.MustParse(text))).To(BeZero(), text)
		}
	}
}

const small, bounded = `"1e-2147483647"`, `"1e-0000000099"`

func TestQuantitiesAreBoundedWhereverJSONHasThem(t *testing.T) {
	for where, text := range map[string]string{
		"a pod":                    `{"kind":"Pod","spec":{"containers":[{"resources":{"requests":{"cpu":Q}}}]}}`,
		"a pod without a kind":     `{"spec":{"initContainers":[{},{"resources":{"limits":{"x":1,"cpu":Q}}}],"overhead":{"cpu":Q}}}`,
		"a list":                   `{"items":[{"spec":{"containers":[{"resources":{"requests":{"cpu":Q}}}]}}]}`,
		"a list of any kind":       `{"kind":"List","items":[{"spec":{"template":{"spec":{"containers":[{"resources":{"requests":{"cpu":Q}}}]}}}}]}`,
		"an event":                 `{"type":"ADDED","object":{"status":{"capacity":{"cpu":Q},"allocatable":{"cpu":Q}}}}`,
		"fields in another case":   `{"SPEC":{"Containers":[{"reſources":{"Requests":{"cpu":Q}}}]}}`,
		"fields with escapes":      `{"sp\u0065c":{"containers":[{"resources":{"\u0072equests":{"cpu":Q}}}]}}`,
		"white space":              "{ \"spec\" :\n{ \"volumes\" : [ { \"emptyDir\" : { \"sizeLimit\" :\tQ } } ] } }",
		"a scale by a metric":      `{"spec":{"metrics":[{"resource":{"target":{"averageValue":Q}}},{"object":{"target":{"value":Q}}}]}}`,
		"a claim in a StatefulSet": `{"spec":{"volumeClaimTemplates":[{"spec":{"resources":{"requests":{"storage":Q}}}}]}}`,
	} {
		t.Run(where, func(t *testing.T) {
			g := NewWithT(t)
			for _, q := range [][2]string{{small, bounded}, {"1e-2147483647", "1e-0000000099"}, {`" 1e-2147483647 "`, `" 1e-0000000099 "`}} {
				got := []byte(strings.ReplaceAll(text, "Q", q[0]))
				err := paths.JSON(got, quantities.Limits{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(got)).To(Equal(strings.ReplaceAll(text, "Q", q[1])))
			}
		})
	}
}

func TestTextThatOnlyLooksLikeAQuantityStaysAsItIs(t *testing.T) {
	g := NewWithT(t)
	text := `{"metadata":{"name":"1e123456","labels":{"version":"12e3456789"}},"spec":{"containers":[{"name":"1e123456","image":"a@sha256:1e123456",` +
		`"env":[{"name":"COMMIT","value":"1e2345678"}],"args":["1e123456"]}],"replicas":1e123456}}`
	got := []byte(text)
	err := paths.JSON(got, quantities.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).To(Equal(text))
}

func TestATextThatCannotBeLookedThroughIsRefused(t *testing.T) {
	for _, text := range []string{
		``, `{`, `{"a"`, `{"a":}`, `{"a":1`, `[1,`, `{"a":"\`, `{1:2}`, strings.Repeat("[", 20000),
		`{"spec":{"overhead":{"cpu":"1e-21474836\u0034"}}}`,
		"k8s\x00\x8a\x00", `nul`, `[trueish]`, `{"a":NaN}`, `{"a":0x10}`, `'a'`,
	} {
		err := paths.JSON([]byte(text), quantities.Limits{})
		NewWithT(t).Expect(err).To(HaveOccurred(), "%.40q", text)
	}
}

func TestMoreObjectsThanAllowedAreRefused(t *testing.T) {
	g := NewWithT(t)
	for text, objects := range map[string]int{
		`{"items":[{},{},{}]}`: 3, `{"items":[]}`: 0, `{"Items":[{"items":[1,2]}]}`: 1, `{"spec":{"volumes":[{"configMap":{"items":[{},{}]}}]}}`: 0,
	} {
		g.Expect(paths.JSON([]byte(text), quantities.Limits{Objects: max(1, objects)})).To(Succeed(), text)
		if objects > 1 {
			g.Expect(paths.JSON([]byte(text), quantities.Limits{Objects: objects - 1})).To(MatchError(quantities.ErrTooLarge), text)
		}
	}
	pods := encode(t, &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: make([]corev1.Pod, 7)})
	g.Expect(paths.Proto(pods, quantities.Limits{Objects: 7})).To(Succeed())
	g.Expect(paths.Proto(pods, quantities.Limits{Objects: 6})).To(MatchError(quantities.ErrTooLarge))
}

// A few bytes each, and hundreds of bytes once they are decoded.
func TestWhatWouldTakeTooMuchMemoryIsRefused(t *testing.T) {
	g := NewWithT(t)
	const n, limit = 2000, 500_000
	empty := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{Containers: make([]corev1.Container, n)}}
	g.Expect(paths.Proto(encode(t, empty), quantities.Limits{Memory: limit})).To(MatchError(quantities.ErrTooLarge))
	for _, text := range []string{
		`{"spec":{"containers":[` + strings.Repeat("{},", n) + `{}]}}`,
		`{"items":[{},{"spec":{"initContainers":[` + strings.Repeat("{},", n) + `{}]}}]}`,
		`{"x":[` + strings.Repeat("0,", limit/10) + `0]}`,
	} {
		g.Expect(paths.JSON([]byte(text), quantities.Limits{Memory: limit})).To(MatchError(quantities.ErrTooLarge))
		g.Expect(paths.JSON([]byte(text), quantities.Limits{Memory: 10 * limit})).To(Succeed())
	}
}

func encode(t *testing.T, object runtime.Object) []byte {
	t.Helper()
	var into bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &into); err != nil {
		t.Fatal(err)
	}
	return into.Bytes()
}

// bombed has a quantity in place of every 12345678901234, of the same length.
func bombed(data []byte) []byte {
	return bytes.ReplaceAll(data, []byte("12345678901234"), []byte("1e-21474836470"))
}

func TestQuantitiesAreBoundedWhereverProtobufHasThem(t *testing.T) {
	q := resource.MustParse("12345678901234")
	list := corev1.ResourceList{"cpu": q}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}}, Overhead: list,
		Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &q}}}},
	}}
	for where, object := range map[string]runtime.Object{
		"a pod":       &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: template.Spec},
		"pods":        &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{{}, {Spec: template.Spec}}},
		"a node":      &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, Status: corev1.NodeStatus{Capacity: list}},
		"Deployments": &appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}, Items: []appsv1.Deployment{{Spec: appsv1.DeploymentSpec{Template: template}}}},
		"a scaler": &autoscalingv2.HorizontalPodAutoscaler{TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			Metrics: []autoscalingv2.MetricSpec{{Object: &autoscalingv2.ObjectMetricSource{Target: autoscalingv2.MetricTarget{Value: &q}}}}}},
	} {
		t.Run(where, func(t *testing.T) {
			g := NewWithT(t)
			data := encode(t, object)
			n := bytes.Count(data, []byte("12345678901234"))
			g.Expect(n).To(BeNumerically(">", 0))
			data = bombed(data)
			err := paths.Proto(data, quantities.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bytes.Count(data, []byte("1e-00000000099"))).To(Equal(n))
		})
	}
}

func TestProtobufThatDoesNotSayItsKindAndVersionIsRefused(t *testing.T) {
	for _, half := range []metav1.TypeMeta{{}, {APIVersion: "v1"}, {Kind: "Pod"}, {APIVersion: "apps/", Kind: "Deployment"}} {
		err := paths.Proto(encode(t, &corev1.Pod{TypeMeta: half}), quantities.Limits{})
		NewWithT(t).Expect(err).To(MatchError(quantities.ErrMalformed), "%+v", half)
	}
}

func TestQuantitiesInEventsOfAWatchAreBounded(t *testing.T) {
	g := NewWithT(t)
	pod := encode(t, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{Overhead: corev1.ResourceList{"cpu": resource.MustParse("12345678901234")}}})
	var into bytes.Buffer
	g.Expect(protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme).Encode(&metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: pod}}, &into)).To(Succeed())
	data := bombed(into.Bytes())
	g.Expect(paths.ProtoEvent(data, quantities.Limits{})).To(Succeed())
	g.Expect(string(data)).To(ContainSubstring("1e-00000000099"))
	g.Expect(paths.ProtoEvent(data[:len(data)-1], quantities.Limits{})).To(MatchError(quantities.ErrMalformed))
}

// What is harmless is left as it is, byte for byte: whatever the types of the scheme can hold.
func TestHarmlessObjectsStayAsTheyAre(t *testing.T) {
	g := NewWithT(t)
	for seed := range int64(40) {
		fill := randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 2).MaxDepth(10).Funcs(
			func(q *resource.Quantity, c randfill.Continue) {
				*q = *resource.NewQuantity(c.Int63n(1000), resource.DecimalSI)
			},
			func(*metav1.FieldsV1, randfill.Continue) {}, func(*runtime.RawExtension, randfill.Continue) {},
		)
		pod := &corev1.Pod{}
		fill.Fill(pod)
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		text, err := json.Marshal(pod)
		g.Expect(err).NotTo(HaveOccurred())
		data := encode(t, pod)
		for _, is := range []struct {
			data []byte
			look func([]byte, quantities.Limits) error
		}{{text, paths.JSON}, {data, paths.Proto}} {
			before := bytes.Clone(is.data)
			g.Expect(is.look(is.data, quantities.Limits{})).To(Succeed())
			g.Expect(cmp.Diff(before, is.data)).To(BeEmpty())
		}
	}
}

// amount is a quantity of somebody's own, which decodes as the one in it does.
type amount struct{ resource.Quantity }

type order struct {
	metav1.TypeMeta
	Amounts map[string]amount `json:"amounts"`
	Most    *amount           `json:"most"`
}

func (o *order) DeepCopyObject() runtime.Object { return o }

func TestQuantitiesThatAreEmbeddedInATypeOfSomebodysOwnAreBounded(t *testing.T) {
	g := NewWithT(t)
	own := runtime.NewScheme()
	own.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Order"}, &order{})
	got := []byte(`{"amounts":{"a":` + small + `},"most":` + small + `}`)
	g.Expect(quantities.NewPaths(own).JSON(got, quantities.Limits{})).To(Succeed())
	g.Expect(string(got)).To(Equal(`{"amounts":{"a":` + bounded + `},"most":` + bounded + `}`))
}

func TestNamesThatAreAsTheyShouldBeCostNothing(t *testing.T) {
	g := NewWithT(t)
	text := []byte(`{"metadata":{"labels":{"app":"web","tier":"front"},"annotations":{"c":"d"}},"spec":{"new":{"field":"1"},"overhead":{"cpu":"1"}}}`)
	g.Expect(testing.AllocsPerRun(100, func() { _ = paths.JSON(text, quantities.Limits{}) })).To(BeZero())
}

// fuzzedToken is how many bytes a text of metadata may have where one is fuzzed.
const fuzzedToken = 8

// expectShort fails the test if a pod was decoded whose metadata has a text of more bytes.
func expectShort(t *testing.T, data []byte, pod *corev1.Pod, most int) {
	t.Helper()
	for _, text := range []string{pod.Name, pod.GenerateName, pod.Namespace, string(pod.UID), pod.ResourceVersion} {
		if len(text) > most {
			t.Errorf("%q: a text of the metadata has %d bytes", data, len(text))
		}
	}
}

// FuzzJSON looks for a text that decodes to a pod with a quantity that was not bounded, or with a long text in its metadata.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"spec":{"containers":[{"resources":{"requests":{"cpu":"1e-200"}}}],"overhead":{"cpu":1e200}}}`))
	f.Add([]byte(`{"sp\u0065c":{"Overhead":{"":"1e-200"}}}`))
	f.Add([]byte(`{"metadata":{"name":"a","resourceVersion":"12345678"}}`))
	f.Add([]byte(`{"Met\u0061data":{"uid":"1","UID":"123456789"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if paths.JSON(text, quantities.Limits{Token: fuzzedToken}) != nil {
			return
		}
		again := bytes.Clone(text)
		var pod corev1.Pod
		if json.Unmarshal(text, &pod) != nil {
			return
		}
		expectShort(t, text, &pod, 3*fuzzedToken) // a byte that is not UTF-8 becomes three
		for _, quantity := range pod.Spec.Overhead {
			if d := quantity.AsDec(); d.Scale() < -2*quantities.MaxExponent {
				t.Errorf("%q: scale %d", text, d.Scale())
			}
		}
		if err := paths.JSON(again, quantities.Limits{}); err != nil || !bytes.Equal(text, again) {
			t.Errorf("%q: looked at again: %q, %v", text, again, err)
		}
	})
}

func BenchmarkNewPaths(b *testing.B) {
	for range b.N {
		quantities.NewPaths(scheme.Scheme)
	}
}

func BenchmarkPaths(b *testing.B) {
	pod := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Env: make([]corev1.EnvVar, 20),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}}}}}
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for range 1000 {
		list.Items = append(list.Items, pod)
	}
	var into bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(list, &into); err != nil {
		b.Fatal(err)
	}
	text, err := json.Marshal(list)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("protobuf", func(b *testing.B) {
		b.SetBytes(int64(into.Len()))
		for range b.N {
			_ = paths.Proto(into.Bytes(), quantities.Limits{})
		}
	})
	b.Run("JSON", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for range b.N {
			_ = paths.JSON(text, quantities.Limits{})
		}
	})
}
