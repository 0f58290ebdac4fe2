package fleet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// release is a patch by which a pod is released.
const release = `{"metadata":{"annotations":{"plimsoll.dev/released":"x"},"labels":{"pod-template-hash":"released-abc"}},"spec":{"activeDeadlineSeconds":100000}}`

// patching changes a pod.
func patching(namespace, pod, body string) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		kind, data, options := strategic(body)
		_, err := p.CoreV1().Pods(namespace).Patch(ctx, pod, kind, data, options)
		return err
	}
}

func podEscapes() []Escape {
	creating := func(namespace string, change func(*corev1.Pod)) func(context.Context, *prisoner) error {
		return func(ctx context.Context, p *prisoner) error {
			pod := pausePod(namespace, "escaped")
			change(pod)
			_, err := p.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: dry})
			return err
		}
	}
	evicting := func(namespace, name string, options *metav1.DeleteOptions) func(context.Context, *prisoner) error {
		return func(ctx context.Context, p *prisoner) error {
			return p.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, DeleteOptions: options,
			})
		}
	}
	uid := &metav1.Preconditions{UID: ptr.To(types.UID("of-nobody"))}
	return []Escape{
		{Name: "replace the image of a pod in kube-system", try: patching(metav1.NamespaceSystem, systemPod, `{"spec":{"containers":[{"name":"main","image":"attacker:1"}]}}`)},
		{Name: "add a toleration to a tenant's pod", try: func(ctx context.Context, p *prisoner) error {
			_, err := p.CoreV1().Pods(escapeTargets).Patch(ctx, foreignPod, types.JSONPatchType,
				[]byte(`[{"op":"add","path":"/spec/tolerations/-","value":{"operator":"Exists"}}]`), metav1.PatchOptions{DryRun: dry})
			return err
		}},
		{Name: "take a tenant's pod into another Service by a label", try: patching(escapeTargets, foreignPod, `{"metadata":{"labels":{"app":"payments"}}}`)},
		{Name: "take a pod out of its ReplicaSet without a release", try: patching(escapeTargets, foreignPod, `{"metadata":{"labels":{"pod-template-hash":"x"}}}`)},
		{Name: "keep a pod from ending by a finalizer", try: patching(escapeTargets, foreignPod, `{"metadata":{"finalizers":["example.com/stay"]}}`)},
		{Name: "change an annotation that others read", try: patching(escapeTargets, foreignPod, `{"metadata":{"annotations":{"sidecar.istio.io/inject":"false"}}}`)},
		{Name: "end a pod by a deadline", try: patching(escapeTargets, foreignPod, `{"spec":{"activeDeadlineSeconds":1}}`)},
		{Name: "end a pod by a deadline as if it were released", try: patching(escapeTargets, foreignPod,
			`{"metadata":{"annotations":{"plimsoll.dev/released":"x"}},"spec":{"activeDeadlineSeconds":100000}}`)},
		{Name: "release a pod and end it at once", try: patching(escapeTargets, foreignPod,
			`{"metadata":{"annotations":{"plimsoll.dev/released":"x"},"labels":{"pod-template-hash":"released-abc"}},"spec":{"activeDeadlineSeconds":1}}`)},
		{Name: "release a pod without a deadline", try: patching(escapeTargets, foreignPod,
			`{"metadata":{"annotations":{"plimsoll.dev/released":"x"},"labels":{"pod-template-hash":"released-abc"}}}`)},
		{Name: "release a pod of kube-system", try: patching(metav1.NamespaceSystem, systemPod, release)},
		{Name: "create a privileged pod in its own namespace", try: creating(Namespace, func(pod *corev1.Pod) {
			pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		})},
		{Name: "create a pod with the node's disk in its own namespace", try: creating(Namespace, func(pod *corev1.Pod) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		})},
		{Name: "create a pod in kube-system", try: creating(metav1.NamespaceSystem, func(*corev1.Pod) {})},
		{Name: "delete a tenant's pod past its disruption budget", try: func(ctx context.Context, p *prisoner) error {
			return p.CoreV1().Pods(escapeTargets).Delete(ctx, foreignPod, metav1.DeleteOptions{DryRun: dry})
		}},
		{Name: "evict a pod of kube-system", try: evicting(metav1.NamespaceSystem, systemPod, &metav1.DeleteOptions{DryRun: dry, Preconditions: uid})},
		{Name: "evict a pod by its name only", try: evicting(escapeTargets, foreignPod, &metav1.DeleteOptions{DryRun: dry})},
		{Name: "evict a pod without the time that it has to end", try: evicting(escapeTargets, foreignPod, &metav1.DeleteOptions{
			DryRun: dry, Preconditions: uid, GracePeriodSeconds: ptr.To[int64](0),
		})},
		{Name: "take another's scheduling gate away", try: func(ctx context.Context, p *prisoner) error {
			_, err := p.CoreV1().Pods(escapeTargets).Patch(ctx, gatedPod, types.JSONPatchType,
				[]byte(`[{"op":"remove","path":"/spec/schedulingGates/0"}]`), metav1.PatchOptions{DryRun: dry})
			return err
		}},
		{Name: "run a command in a pod", try: func(ctx context.Context, p *prisoner) error {
			return p.CoreV1().RESTClient().Post().Namespace(escapeTargets).Resource("pods").Name(foreignPod).SubResource("exec").
				Param("command", "id").Param("stdout", "true").Do(ctx).Error()
		}},
	}
}
