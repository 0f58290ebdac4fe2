package quantities_test

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

// FuzzProto looks for protobuf that decodes to a pod with a quantity that was not bounded, or with a long text in its metadata, and for a
// panic. A decoder that is told what to decode into guesses what the text does not say.
func FuzzProto(f *testing.F) {
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{
		Overhead:   corev1.ResourceList{"cpu": resource.MustParse("1e-90")},
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m")}}}},
	}}
	var seed bytes.Buffer
	if err := serializer.Encode(pod, &seed); err != nil {
		f.Fatal(err)
	}
	f.Add(seed.Bytes())
	f.Add(bytes.ReplaceAll(seed.Bytes(), []byte("1500m"), []byte("1e-99")))
	pod.ObjectMeta = metav1.ObjectMeta{Name: "12345678", ResourceVersion: "123456789"}
	var named bytes.Buffer
	if err := serializer.Encode(pod, &named); err != nil {
		f.Fatal(err)
	}
	f.Add(named.Bytes())
	f.Add([]byte("k8s\x00\x0a\xff"))
	f.Add(bytes.Replace(seed.Bytes(), []byte("\x0a\x02v1"), []byte("\x0a\x00"), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		if paths.Proto(data, quantities.Limits{Token: fuzzedToken}) != nil {
			return
		}
		again := bytes.Clone(data)
		decodes := false
		for _, into := range []runtime.Object{nil, &corev1.Pod{}} {
			decoded, _, err := serializer.Decode(data, nil, into)
			decodes = decodes || err == nil
			if pod, ok := decoded.(*corev1.Pod); err == nil && ok {
				expectShort(t, data, pod, fuzzedToken)
				for _, quantity := range pod.Spec.Overhead {
					if d := quantity.AsDec(); d.Scale() < -2*quantities.MaxExponent || d.Scale() > 2*quantities.MaxExponent {
						t.Errorf("%q: scale %d", data, d.Scale())
					}
				}
			}
		}
		if !decodes {
			return
		}
		if err := paths.Proto(again, quantities.Limits{}); err != nil || !bytes.Equal(data, again) {
			t.Errorf("%q: looked at again: %q, %v", data, again, err)
		}
	})
}
