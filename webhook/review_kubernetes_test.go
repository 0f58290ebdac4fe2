package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// kubernetesPod is what decides about a pod, in Kubernetes' own types.
type kubernetesPod struct {
	UID, Namespace, Name, Operation, Group, Resource, SubResource string
	DryRun                                                        bool
	Owner                                                         spot.OwnerRef
	Labels, Annotations, NodeSelector                             map[string]string
	Tolerations                                                   []corev1.Toleration
	NodeAffinity                                                  bool
	Terms                                                         int
}

// readByKubernetes decodes a review as API servers decode: into Kubernetes' own types, quantities included.
func readByKubernetes(body []byte) (kubernetesPod, bool) {
	var review admissionv1.AdmissionReview
	if kjson.UnmarshalCaseSensitivePreserveInts(body, &review) != nil || review.Request == nil {
		return kubernetesPod{}, false
	}
	var pod corev1.Pod
	if raw := review.Request.Object.Raw; len(raw) > 0 && kjson.UnmarshalCaseSensitivePreserveInts(raw, &pod) != nil {
		return kubernetesPod{}, false
	}
	in := review.Request
	read := kubernetesPod{
		UID: string(in.UID), Namespace: in.Namespace, Name: pod.Name, Operation: string(in.Operation),
		Group: in.Resource.Group, Resource: in.Resource.Resource, SubResource: in.SubResource, DryRun: in.DryRun != nil && *in.DryRun,
		Labels: orNil(pod.Labels), Annotations: orNil(pod.Annotations), NodeSelector: orNil(pod.Spec.NodeSelector),
	}
	if owner := metav1.GetControllerOf(&pod); owner != nil {
		read.Owner = spot.OwnerRef{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: string(owner.UID)}
	}
	for _, t := range pod.Spec.Tolerations {
		read.Tolerations = append(read.Tolerations, corev1.Toleration{Key: t.Key, Operator: t.Operator, Value: t.Value, Effect: t.Effect})
	}
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		read.NodeAffinity = true
		if required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			read.Terms = len(required.NodeSelectorTerms)
		}
	}
	return read, true
}

// readByScanner is the same by the scanner.
func readByScanner(body []byte) (kubernetesPod, bool) {
	r, err := decodeReview(body)
	if err != nil {
		return kubernetesPod{}, false
	}
	read := kubernetesPod{
		UID: r.pod.RequestUID, Namespace: r.pod.Namespace, Name: r.pod.Name, Operation: r.operation,
		Group: r.group, Resource: r.resource, SubResource: r.subResource, DryRun: r.pod.DryRun, Owner: r.pod.Owner,
		Labels: orNil(r.pod.Labels), Annotations: orNil(r.pod.Annotations), NodeSelector: orNil(r.pod.NodeSelector),
		NodeAffinity: r.pod.NodeAffinity,
	}
	if len(r.pod.Tolerations) > 0 {
		read.Tolerations = r.pod.Tolerations
	}
	if r.pod.Required != nil {
		read.Terms = len(r.pod.Required.NodeSelectorTerms)
	}
	return read, true
}

// FuzzReviewAsKubernetes looks for a review that the scanner and Kubernetes' own types both take, and read differently.
func FuzzReviewAsKubernetes(f *testing.F) {
	f.Add(reviewOf("192a64db", `,"dryRun":true,"object":{"metadata":{"name":"a-0","labels":{"a":"b"},"annotations":{"c":"d"},`+
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"a","uid":"1","controller":true}]},`+
		`"spec":{"nodeSelector":{"d":"e"},"tolerations":[{"key":"f","operator":"Equal","value":"g","effect":"NoSchedule"}],`+
		`"containers":[{"name":"a","resources":{"requests":{"cpu":"100m"}}}],"overhead":{"cpu":1}}}`))
	for _, seed := range oddReviews {
		if len(seed) < 1<<10 {
			f.Add([]byte(seed))
		}
	}
	paths := quantities.NewPaths(scheme.Scheme)
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := readByScanner(body)
		if !ok || paths.JSON(body, quantities.Limits{}) != nil { // of what is not bounded, Kubernetes' own decoding may take hours
			return
		}
		want, ok := readByKubernetes(body)
		if !ok {
			return // an API server does not send what it cannot read
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%.2000q\nKubernetes reads -, the scanner reads +:\n%s", body, diff)
		}
	})
}
