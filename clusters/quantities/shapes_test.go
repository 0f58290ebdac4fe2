package quantities_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

// aLot is how much memory what one event becomes may take.
const aLot = 12 << 20

// definitions are the scheme with the one kind that contains itself, and has types that decode their JSON themselves.
func definitions(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// definition is one with a schema.
func definition(schema apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{Kind: "CustomResourceDefinition", APIVersion: "apiextensions.k8s.io/v1"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
		}}},
	}
}

// realDefinition is that of WebApps.
func realDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile("../../reconcile/webapp/crd/apps.plimsoll.dev_webapps.yaml")
	if err != nil {
		t.Fatal(err)
	}
	made := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, made); err != nil {
		t.Fatal(err)
	}
	return made
}

func nested(levels int) apiextensionsv1.JSONSchemaProps {
	var schema apiextensionsv1.JSONSchemaProps
	for range levels {
		inner := schema
		schema = apiextensionsv1.JSONSchemaProps{Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &inner}}
	}
	return schema
}

// everyVolume are so many volumes, each of every source that there is.
func everyVolume(volumes int) *corev1.Pod {
	var volume corev1.Volume
	for _, source := range reflect.ValueOf(&volume.VolumeSource).Elem().Fields() {
		source.Set(reflect.New(source.Type().Elem()))
	}
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}}
	for range volumes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	}
	return pod
}

func TestTypesThatDecodeThemselvesAndPointersAreCounted(t *testing.T) {
	scheme := definitions(t)
	paths := quantities.NewPaths(scheme)
	many := apiextensionsv1.JSONSchemaProps{Items: &apiextensionsv1.JSONSchemaPropsOrArray{JSONSchemas: make([]apiextensionsv1.JSONSchemaProps, 100_000)}}
	words := apiextensionsv1.JSONSchemaProps{Dependencies: apiextensionsv1.JSONSchemaDependencies{"a": {Property: make([]string, 1_000_000)}}}
	sources := 0
	for source := range reflect.TypeFor[corev1.VolumeSource]().Fields() {
		sources += int(source.Type.Elem().Size())
	}
	const volumes = 20_000
	for name, test := range map[string]struct {
		object runtime.Object
		err    error
		takes  int // at least, as JSON
	}{
		"a list of schemas":              {definition(many), quantities.ErrTooLarge, 100_000 * int(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]().Size())},
		"a list of words":                {definition(words), quantities.ErrTooLarge, 1_000_000 * 2 * 16},
		"volumes of every source":        {everyVolume(volumes), quantities.ErrTooLarge, volumes * (sources + 1000)},
		"schemas in each other":          {definition(nested(2000)), quantities.ErrTooDeep, 0},
		"as many as a real one may have": {definition(nested(60)), nil, 0},
		"as many as a real pod may have": {everyVolume(100), nil, 0},
		"the definition of WebApps":      {realDefinition(t), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var binary bytes.Buffer
			g.Expect(protobuf.NewSerializer(scheme, scheme).Encode(test.object, &binary)).To(Succeed())
			text, err := json.Marshal(test.object)
			g.Expect(err).NotTo(HaveOccurred())
			outcome := Succeed()
			if test.err != nil {
				outcome = MatchError(test.err)
			}
			g.Expect(paths.Proto(binary.Bytes(), quantities.Limits{Memory: aLot})).To(outcome)
			g.Expect(paths.JSON(text, quantities.Limits{Memory: aLot})).To(outcome)
			taken := 0
			_ = paths.JSON(text, quantities.Limits{Taken: &taken})
			g.Expect(taken).To(BeNumerically(">=", test.takes))
		})
	}
}

// Of unstructured objects, a map takes 360 bytes that is written with 7.
func TestMapsOfAnyValuesAreCounted(t *testing.T) {
	paths := quantities.NewPaths(definitions(t))
	for what, item := range map[string]string{
		"maps of one entry": `{"":0}`, "empty maps": `{}`, "lists": `[0]`, "texts": `"ab"`, "numbers": `1000`,
		"maps of many entries": `{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0}`,
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			text := []byte(`{"kind":"NodePool","apiVersion":"karpenter.sh/v1","a":[` + strings.Repeat(item+",", 20_000) + item + `]}`)
			taken := 0
			g.Expect(paths.JSON(text, quantities.Limits{Untyped: true, Taken: &taken})).To(Succeed())
			into := &unstructured.Unstructured{}
			// Three times: of the list, which grows by a quarter, all the memory counts that it had before.
			g.Expect(allocated(unstructured.UnstructuredJSONScheme, text, into)).To(BeNumerically("<", uint64(3*taken+len(text)+slackOfDecoding)))
			g.Expect(into.Object).To(HaveKey("a"))
		})
	}
}

// A packed list has as few bytes as numbers, each of which takes eight.
func TestPackedNumbersAreCounted(t *testing.T) {
	const groups = 1 << 20
	g := NewWithT(t)
	scheme := definitions(t)
	var binary bytes.Buffer
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}}
	packed := protowire.AppendBytes(protowire.AppendTag(nil, supplementalGroups, protowire.BytesType), make([]byte, groups))
	security := protowire.AppendBytes(protowire.AppendTag(nil, securityContext, protowire.BytesType), packed)
	raw := protowire.AppendBytes(protowire.AppendTag(nil, podSpec, protowire.BytesType), security)
	g.Expect(protobuf.NewSerializer(scheme, scheme).Encode(&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: raw}, &binary)).To(Succeed())

	_, _, err := protobuf.NewSerializer(scheme, scheme).Decode(binary.Bytes(), nil, pod)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pod.Spec.SecurityContext.SupplementalGroups).To(HaveLen(groups), "decoders accept what no encoder of Kubernetes writes")

	paths, taken := quantities.NewPaths(scheme), 0
	g.Expect(paths.Proto(binary.Bytes(), quantities.Limits{Taken: &taken})).To(Succeed())
	g.Expect(taken).To(BeNumerically(">=", 8*groups))
	g.Expect(paths.Proto(binary.Bytes(), quantities.Limits{Memory: 4 * groups})).To(MatchError(quantities.ErrTooLarge))
}

// Numbers of protobuf fields: of a Pod, of its spec, and of the security context in it.
const podSpec, securityContext, supplementalGroups = 2, 14, 4

// A generated decoder needs a stack for each level, and Go ends a process whose stack is too large. No encoder writes so many.
func TestMessagesInEachOtherAreNotDecoded(t *testing.T) {
	g := NewWithT(t)
	paths := quantities.NewPaths(definitions(t))
	tag := func(field int, content []byte) []byte {
		var length []byte
		for n := len(content); ; n >>= 7 {
			if n < 0x80 {
				length = append(length, byte(n))
				break
			}
			length = append(length, byte(n)|0x80)
		}
		key := field<<3 | 2
		if key < 0x80 {
			return append(append([]byte{byte(key)}, length...), content...)
		}
		return append(append([]byte{byte(key) | 0x80, byte(key >> 7)}, length...), content...)
	}
	const items, schema = 24, 1
	var props []byte
	for range 3000 {
		props = tag(items, tag(schema, props))
	}
	spec := tag(7, tag(4, tag(1, props))) // versions, schema, openAPIV3Schema
	object := append([]byte("k8s\x00"), append(tag(1, append(tag(1, []byte("apiextensions.k8s.io/v1")), tag(2, []byte("CustomResourceDefinition"))...)), tag(2, tag(2, spec))...)...)
	g.Expect(paths.Proto(object, quantities.Limits{})).To(MatchError(quantities.ErrTooDeep), "though nothing else is bounded")
}

// Each level of a type that decodes itself reads all below it again.
func TestWhatIsReadAgainIsTaken(t *testing.T) {
	g := NewWithT(t)
	paths := quantities.NewPaths(definitions(t))
	taken := func(levels int) (taken int) {
		text := `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","spec":{"versions":[{"schema":{"openAPIV3Schema":` +
			strings.Repeat(`{"items":`, levels) + `{"description":"` + strings.Repeat("a", 10_000) + `"}` + strings.Repeat("}", levels) + `}}]}}`
		g.Expect(paths.JSON([]byte(text), quantities.Limits{Taken: &taken})).To(Succeed())
		return taken
	}
	g.Expect(taken(50) - taken(10)).To(BeNumerically(">", 40*10_000))
	deep := `{"spec":{"versions":[{"schema":{"openAPIV3Schema":` + strings.Repeat(`{"items":`, 100)
	g.Expect(paths.JSON([]byte(deep), quantities.Limits{})).To(MatchError(quantities.ErrTooDeep))
}
