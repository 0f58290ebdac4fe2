package fleet

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// workloadEscapes need what a member has for WebApps.
func workloadEscapes() []Escape {
	return []Escape{
		{Name: "change a Deployment that is no WebApp's", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := strategic(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"attacker:1"}]}}}}`)
			_, err := p.AppsV1().Deployments(escapeTargets).Patch(ctx, foreignPod, kind, data, options)
			return err
		}},
		{Name: "run a privileged Deployment as a WebApp's", try: func(ctx context.Context, p *prisoner) error {
			labels := map[string]string{"app": "escaped"}
			pod := pausePod("", "").Spec
			pod.ServiceAccountName, pod.HostPID = "escaped", true
			pod.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
			_, err := p.AppsV1().Deployments(escapeTargets).Create(ctx, &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "escaped", OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps.plimsoll.dev/v1", Kind: "WebApp", Name: "escaped", UID: "of-nobody", Controller: ptr.To(true),
				}}},
				Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod,
				}},
			}, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "take over another's Service", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"spec":{"externalIPs":["10.1.2.3"]}}`)
			_, err := p.CoreV1().Services(metav1.NamespaceDefault).Patch(ctx, "kubernetes", kind, data, options)
			return err
		}},
	}
}
