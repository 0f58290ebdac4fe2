package quantities_test

import (
	"bytes"
	"encoding/json"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

const (
	// slackOfDecoding is what a decoder may allocate for any text, in bytes: buffers, errors.
	slackOfDecoding = 32 << 10
	// timesTaken is how often it may allocate what was counted, and the text itself: arrays that grow are allocated several times.
	timesTaken = 12
)

// FuzzMemory looks for a text, in either encoding, whose decoding allocates much more than was counted, by client-go's decoder, which
// goes by what the text says it is, or by the kind that a cache expects.
func FuzzMemory(f *testing.F) {
	scheme := kruntime.NewScheme()
	for _, add := range []func(*kruntime.Scheme) error{corev1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			f.Fatal(err)
		}
	}
	paths, decoder := quantities.NewPaths(scheme), serializer.NewCodecFactory(scheme).UniversalDeserializer()
	several := apiextensionsv1.JSONSchemaProps{
		Items:        &apiextensionsv1.JSONSchemaPropsOrArray{JSONSchemas: make([]apiextensionsv1.JSONSchemaProps, 40)},
		Dependencies: apiextensionsv1.JSONSchemaDependencies{"a": {Property: make([]string, 100)}},
		Properties:   map[string]apiextensionsv1.JSONSchemaProps{"a": nested(3)},
	}
	pods := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{*everyVolume(2), *everyVolume(1)}}
	for _, seed := range []kruntime.Object{definition(several), definition(nested(10)), pods, everyVolume(3)} {
		var binary bytes.Buffer
		if err := protobuf.NewSerializer(scheme, scheme).Encode(seed, &binary); err != nil {
			f.Fatal(err)
		}
		text, err := json.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(binary.Bytes())
		f.Add(text)
	}
	into := []func() kruntime.Object{
		func() kruntime.Object { return nil },
		func() kruntime.Object { return &corev1.PodList{} },
		func() kruntime.Object { return &apiextensionsv1.CustomResourceDefinition{} },
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		binary := bytes.HasPrefix(data, []byte("k8s\x00"))
		look := paths.JSON
		if binary {
			look = paths.Proto
		}
		taken, untyped := 0, 0
		if look(data, quantities.Limits{Taken: &taken}) != nil {
			return
		}
		for _, into := range into {
			expectCounted(t, decoder, data, into, taken)
		}
		if !binary && look(data, quantities.Limits{Untyped: true, Taken: &untyped}) == nil {
			expectCounted(t, unstructured.UnstructuredJSONScheme, data, func() kruntime.Object { return nil }, untyped)
		}
	})
}

// expectCounted fails the test if decoding allocates much more than was counted.
func expectCounted(t *testing.T, decoder kruntime.Decoder, data []byte, into func() kruntime.Object, taken int) {
	t.Helper()
	allowed := uint64(slackOfDecoding + timesTaken*(taken+len(data)))
	// The least of several: other goroutines allocate too, and the first decoding of a type fills caches.
	least := allocated(decoder, data, into())
	for range 3 {
		if least <= allowed {
			return
		}
		least = min(least, allocated(decoder, data, into()))
	}
	if least > allowed {
		t.Fatalf("decoding %q into %T allocates %d bytes, %d were counted for %d bytes of text", data, into(), least, taken, len(data))
	}
}

// allocated is how many bytes the decoding of data allocates.
func allocated(decoder kruntime.Decoder, data []byte, into kruntime.Object) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, _ = decoder.Decode(data, nil, into)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
