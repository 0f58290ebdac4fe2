package quantities_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

// tokens are objects, lists and events whose metadata has a text, and others that have it elsewhere.
func tokens(text string) (inMetadata, elsewhere map[string]runtime.Object) {
	pod := func(meta metav1.ObjectMeta) *corev1.Pod {
		return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta}
	}
	pods := func(meta metav1.ListMeta, items ...corev1.Pod) *corev1.PodList {
		return &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: meta, Items: items}
	}
	of := metav1.ObjectMeta{Name: "a", ResourceVersion: text}
	data := map[string]string{"metadata": text, "resourceVersion": text, "continue": text}
	return map[string]runtime.Object{
			"the version of an object":           pod(of),
			"the name of an object":              pod(metav1.ObjectMeta{Name: text}),
			"the version of a list":              pods(metav1.ListMeta{ResourceVersion: text}),
			"the token with which one continues": pods(metav1.ListMeta{Continue: text}),
			"the version of an object in a list": pods(metav1.ListMeta{}, corev1.Pod{}, *pod(of)),
			"the version of what has no spec":    &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: of},
		}, map[string]runtime.Object{
			"data":        &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: data},
			"annotations": pod(metav1.ObjectMeta{Annotations: data, ManagedFields: []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(fmt.Sprintf("{%q:{}}", text))}}}),
			"a spec": &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
				VolumeSource: corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: text, Options: data}},
			}}}},
			"the spec of one in a list": pods(metav1.ListMeta{}, corev1.Pod{Spec: corev1.PodSpec{NodeName: text, NodeSelector: data}}),
		}
}

func TestATextOfMetadataThatIsTooLongIsRefused(t *testing.T) {
	const most = 100
	long := strings.Repeat("1", most+1)
	ways := map[string]func(t *testing.T, object runtime.Object, limits quantities.Limits) error{
		"JSON": func(t *testing.T, object runtime.Object, limits quantities.Limits) error {
			return paths.JSON(asJSON(t, object), limits)
		},
		"an event in JSON": func(t *testing.T, object runtime.Object, limits quantities.Limits) error {
			return paths.JSON(fmt.Appendf(nil, `{"type":"ADDED","object":%s}`, asJSON(t, object)), limits)
		},
		"protobuf": func(t *testing.T, object runtime.Object, limits quantities.Limits) error {
			return paths.Proto(encode(t, object), limits)
		},
		"an event in protobuf": func(t *testing.T, object runtime.Object, limits quantities.Limits) error {
			event, err := (&metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: encode(t, object)}}).Marshal()
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			return paths.ProtoEvent(event, limits)
		},
	}
	for way, look := range ways {
		inMetadata, elsewhere := tokens(long)
		for what, object := range inMetadata {
			if _, list := object.(*corev1.PodList); list && strings.HasPrefix(way, "an event") {
				continue // no event has a list
			}
			t.Run(way+", "+what, func(t *testing.T) {
				g := NewWithT(t)
				g.Expect(look(t, object, quantities.Limits{Token: most})).To(MatchError(quantities.ErrLongToken))
				g.Expect(look(t, object, quantities.Limits{Token: most + 1})).To(Succeed())
				g.Expect(look(t, object, quantities.Limits{})).To(Succeed(), "zero bounds nothing")
			})
		}
		for what, object := range elsewhere {
			t.Run(way+", "+what, func(t *testing.T) {
				NewWithT(t).Expect(look(t, object, quantities.Limits{Token: most})).To(Succeed())
			})
		}
	}
}

func asJSON(t *testing.T, object runtime.Object) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Decoders of JSON take names whatever their case, with escapes, and more than once.
func TestMetadataIsRecognizedHoweverItIsWritten(t *testing.T) {
	long := `"` + strings.Repeat("1", 101) + `"`
	for _, text := range []string{
		`{"metadata":{"resourceVersion":` + long + `}}`, `{"METADATA":{"x":` + long + `}}`, `{"m\u0065tadata":{"Continue":` + long + `}}`,
		`{"metadata":{},"metadata":{"uid":` + long + `}}`, `{"items":[{"Metadata":{"name":` + long + `}}]}`, `{"Items":[{},{"metadata":{"name":` + long + `}}]}`,
		`{"object":{"metadata":{"name":` + long + `}}}`, `{"\u004fbject":{"metadata":{"name":` + long + `}}}`,
	} {
		NewWithT(t).Expect(paths.JSON([]byte(text), quantities.Limits{Token: 100})).To(MatchError(quantities.ErrLongToken), "%.60s", text)
	}
}
