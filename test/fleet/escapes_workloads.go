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
	patchingAccount := func(body string) func(context.Context, *prisoner) error {
		return func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(body)
			_, err := p.CoreV1().ServiceAccounts(escapeTargets).Patch(ctx, foreignAccount, kind, data, options)
			return err
		}
	}
	return []Escape{
		{Name: "change a Deployment that is no WebApp's", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := strategic(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"attacker:1"}]}}}}`)
			_, err := p.AppsV1().Deployments(escapeTargets).Patch(ctx, foreignPod, kind, data, options)
			return err
		}},
		{Name: "run a privileged Deployment as a WebApp's", try: creatingDeployment(escapeTargets, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.HostPID = true
			d.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		})},
		{Name: "run a WebApp's Deployment with a Secret in a volume", try: creatingDeployment(escapeTargets, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secretName}}}}
		})},
		{Name: "run a WebApp's Deployment as another account", try: creatingDeployment(escapeTargets, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.ServiceAccountName = foreignAccount
		})},
		{Name: "run a WebApp's Deployment in kube-system", try: creatingDeployment(metav1.NamespaceSystem, func(*appsv1.Deployment) {})},
		{Name: "run a WebApp's Deployment in its own namespace", try: creatingDeployment(Namespace, func(*appsv1.Deployment) {})},
		{Name: "scale a Deployment of kube-system", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"spec":{"replicas":1}}`)
			_, err := p.AppsV1().Deployments(metav1.NamespaceSystem).Patch(ctx, systemPod, kind, data, options, "scale")
			return err
		}},
		{Name: "change another's service account", try: patchingAccount(`{"imagePullSecrets":[{"name":"escaped"}]}`)},
		{Name: "take over another's service account", try: patchingAccount(`{"metadata":{"ownerReferences":[{"apiVersion":"apps.plimsoll.dev/v1","kind":"WebApp",` +
			`"name":"` + foreignAccount + `","uid":"of-nobody","controller":true}]}}`)},
		{Name: "take over another's Service", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"spec":{"externalIPs":["10.1.2.3"]}}`)
			_, err := p.CoreV1().Services(metav1.NamespaceDefault).Patch(ctx, "kubernetes", kind, data, options)
			return err
		}},
	}
}

// ofWebApp is the metadata of what a WebApp of that name controls.
func ofWebApp(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "apps.plimsoll.dev/v1", Kind: "WebApp", Name: name, UID: "of-nobody", Controller: ptr.To(true),
	}}}
}

// creatingDeployment creates the Deployment of a WebApp, with a change.
func creatingDeployment(namespace string, change func(*appsv1.Deployment)) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		labels := map[string]string{"app": "escaped"}
		pod := pausePod("", "").Spec
		pod.ServiceAccountName = "escaped"
		d := &appsv1.Deployment{ObjectMeta: ofWebApp("escaped"), Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		}}
		change(d)
		_, err := p.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{DryRun: dry})
		return err
	}
}
