package fleet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// probeEscapes are probes in all but one thing. The restricted standard has nothing against any of them.
func probeEscapes() []Escape {
	container := func(change func(*corev1.Container)) func(context.Context, *prisoner) error {
		return creatingProbe(func(pod *corev1.Pod) { change(&pod.Spec.Containers[0]) })
	}
	return []Escape{
		{Name: "create a probe that runs as another account", try: creatingProbe(func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = account })},
		{Name: "create a probe with a token in a volume", try: creatingProbe(func(pod *corev1.Pod) {
			pod.Spec.ServiceAccountName = "default" // without which no API server takes it
			pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
			}}}}
		})},
		{Name: "create a probe with the token that pods usually have", try: creatingProbe(func(pod *corev1.Pod) { pod.Spec.AutomountServiceAccountToken = nil })},
		{Name: "create a probe with a Secret in its environment", try: container(func(c *corev1.Container) {
			from := corev1.LocalObjectReference{Name: "escaped"}
			c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: from}}}
		})},
		{Name: "create a probe with a variable", try: container(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "ESCAPED", Value: "x"}} })},
		{Name: "create a probe that runs a command", try: container(func(c *corev1.Container) { c.Command = []string{"sh"} })},
		{Name: "create a probe that runs arguments", try: container(func(c *corev1.Container) { c.Args = []string{"sh"} })},
		{Name: "create a probe that runs a hook", try: container(func(c *corev1.Container) {
			c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh"}}}}
		})},
		{Name: "create a probe that runs a check", try: container(func(c *corev1.Container) {
			c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh"}}}}
		})},
		{Name: "create a probe that preempts other pods", try: creatingProbe(func(pod *corev1.Pod) { pod.Spec.PriorityClassName = preempting })},
		{Name: "create a probe with a second container", try: creatingProbe(func(pod *corev1.Pod) {
			second := pod.Spec.Containers[0]
			second.Name = "second"
			pod.Spec.Containers = append(pod.Spec.Containers, second)
		})},
		{Name: "keep a probe by a finalizer", try: creatingProbe(func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/stay"} })},
		{Name: "create a probe on a node of its choice", try: creatingProbe(func(pod *corev1.Pod) { pod.Spec.NodeName = escapeTargets })},
	}
}

// creatingProbe creates a probe, with a change.
func creatingProbe(change func(*corev1.Pod)) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		pod := pausePod(Namespace, "escaped")
		pod.Labels = map[string]string{"app.kubernetes.io/managed-by": "plimsoll", "app.kubernetes.io/name": spot.ProbePriorityClass, "plimsoll.dev/slot": "0"}
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
		change(pod)
		_, err := p.CoreV1().Pods(Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: dry})
		return err
	}
}
