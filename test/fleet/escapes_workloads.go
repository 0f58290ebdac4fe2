package fleet

import (
	"context"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// workloadEscapes need what a member has for WebApps.
func workloadEscapes() []Escape {
	return append(append(baselineEscapes(), accountEscapes()...), []Escape{
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
		{Name: "run a WebApp's Deployment as an account of its name that no WebApp has", try: creatingDeployment(escapeTargets, func(d *appsv1.Deployment) {
			d.ObjectMeta = ofWebApp(foreignAccount)
			d.Spec.Template.Spec.ServiceAccountName, d.Spec.Template.Spec.AutomountServiceAccountToken = foreignAccount, ptr.To(true)
			d.Spec.Selector.MatchLabels[v1.LabelWebApp], d.Spec.Template.Labels[v1.LabelWebApp] = foreignAccount, foreignAccount
		})},
		{Name: "keep a WebApp's Deployment by a second owner", try: creatingDeployment(escapeTargets, func(d *appsv1.Deployment) {
			d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: foreignAccount, UID: "of-nobody"})
		})},
		{Name: "keep a WebApp's Deployment by an owner of a version that is not served", try: creatingDeployment(escapeTargets, func(d *appsv1.Deployment) {
			d.OwnerReferences[0].APIVersion = notServed
		})},
		{Name: "keep a WebApp's Deployment that is there by an owner of a version that is not served", try: changingDeployment(
			`{"ownerReferences":[{"apiVersion":"` + notServed + `","kind":"WebApp","name":"` + abandoned + `","uid":"of-nobody","controller":true}]}`)},
		{Name: "keep a WebApp's Deployment by a finalizer", try: creatingDeployment(escapeTargets, func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/stay"} })},
		{Name: "keep the pods of a WebApp's Deployment by a finalizer", try: creatingDeployment(escapeTargets, func(d *appsv1.Deployment) {
			d.Spec.Template.Finalizers = []string{"example.com/stay"}
		})},
		{Name: "keep a WebApp's service account by a finalizer", try: func(ctx context.Context, p *prisoner) error {
			kept := &corev1.ServiceAccount{ObjectMeta: ofWebApp(workloadName)}
			kept.Finalizers = []string{"example.com/stay"}
			_, err := p.CoreV1().ServiceAccounts(escapeTargets).Create(ctx, kept, metav1.CreateOptions{DryRun: dry})
			return err
		}},
		{Name: "keep the pods of a WebApp's Deployment that goes", try: deletingDeployment(metav1.DeleteOptions{
			PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan),
		})},
		{Name: "keep the pods of a WebApp's Deployment that goes, by the older option", try: deletingDeployment(metav1.DeleteOptions{
			OrphanDependents: ptr.To(true), //nolint:staticcheck // API servers still obey it
		})},
		{Name: "run a WebApp's Deployment that preempts other pods", try: creatingDeployment(escapeTargets, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.PriorityClassName = preempting
		})},
		{Name: "adopt pods of others by a WebApp's Deployment", try: creatingDeployment(escapeTargets, func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = map[string]string{"app": foreignPod}, map[string]string{"app": foreignPod}
		})},
		{Name: "serve pods of others by a WebApp's Service", try: creatingService(func(s *corev1.Service) {
			s.Spec.Type, s.Spec.Selector = corev1.ServiceTypeLoadBalancer, map[string]string{"app": foreignPod}
		})},
		{Name: "hold up evictions of others by a WebApp's PodDisruptionBudget", try: creatingBudget(func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{}
		})},
		{Name: "scale another's Deployment by a WebApp's HorizontalPodAutoscaler", try: creatingAutoscaler(func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.ScaleTargetRef.Name = foreignPod
		})},
		{Name: "scale another's Deployment by the HorizontalPodAutoscaler of a WebApp of its name", try: creatingAutoscaler(func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.ObjectMeta = ofWebApp(foreignPod)
			h.Spec.ScaleTargetRef.Name, h.Spec.MaxReplicas = foreignPod, 1
		})},
		{Name: "scale a StatefulSet by a WebApp's HorizontalPodAutoscaler", try: creatingAutoscaler(func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Spec.ScaleTargetRef.Kind = "StatefulSet"
		})},
		{Name: "run a WebApp's Deployment in kube-system", try: creatingDeployment(metav1.NamespaceSystem, func(*appsv1.Deployment) {})},
		{Name: "run a WebApp's Deployment in its own namespace", try: creatingDeployment(Namespace, func(*appsv1.Deployment) {})},
		{Name: "scale a Deployment of kube-system", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"spec":{"replicas":1}}`)
			_, err := p.AppsV1().Deployments(metav1.NamespaceSystem).Patch(ctx, systemPod, kind, data, options, "scale")
			return err
		}},
		{Name: "take over another's Service", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"spec":{"externalIPs":["10.1.2.3"]}}`)
			_, err := p.CoreV1().Services(metav1.NamespaceDefault).Patch(ctx, "kubernetes", kind, data, options)
			return err
		}},
	}...)
}

// accountEscapes change the service account of somebody else.
func accountEscapes() []Escape {
	patchingAccount := func(body string) func(context.Context, *prisoner) error {
		return func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(body)
			_, err := p.CoreV1().ServiceAccounts(escapeTargets).Patch(ctx, foreignAccount, kind, data, options)
			return err
		}
	}
	return []Escape{
		{Name: "change another's service account", try: patchingAccount(`{"imagePullSecrets":[{"name":"escaped"}]}`)},
		{Name: "take over another's service account", try: patchingAccount(`{"metadata":{"ownerReferences":[{"apiVersion":"apps.plimsoll.dev/v1","kind":"WebApp",` +
			`"name":"` + foreignAccount + `","uid":"of-nobody","controller":true}]}}`)},
		{Name: "label another's service account as a WebApp's", try: patchingAccount(`{"metadata":{"labels":{"` + v1.LabelWebApp + `":"` + foreignAccount + `"}}}`)},
	}
}

// baselineEscapes run pods that the baseline Pod Security Standard does not allow, where nothing else enforces it.
func baselineEscapes() []Escape {
	running := func(change func(*corev1.PodTemplateSpec)) func(context.Context, *prisoner) error {
		return creatingDeployment(escapeTargets, func(d *appsv1.Deployment) { change(&d.Spec.Template) })
	}
	inContainer := func(change func(*corev1.Container)) func(context.Context, *prisoner) error {
		return running(func(template *corev1.PodTemplateSpec) { change(&template.Spec.Containers[0]) })
	}
	inPod := func(security *corev1.PodSecurityContext) func(context.Context, *prisoner) error {
		return running(func(template *corev1.PodTemplateSpec) { template.Spec.SecurityContext = security })
	}
	metadataService := &corev1.HTTPGetAction{Host: "169.254.169.254", Port: intstr.FromInt32(80)}
	return []Escape{
		{Name: "run a WebApp's Deployment that sees all of /proc", try: running(func(template *corev1.PodTemplateSpec) {
			template.Spec.HostUsers = ptr.To(false) // without which no API server takes it
			template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)}
		})},
		{Name: "run a WebApp's Deployment without seccomp", try: inPod(&corev1.PodSecurityContext{
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
		})},
		{Name: "run a container of a WebApp's Deployment without seccomp", try: inContainer(func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}
		})},
		{Name: "run a WebApp's Deployment without AppArmor", try: inPod(&corev1.PodSecurityContext{
			AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined},
		})},
		{Name: "run a WebApp's Deployment without AppArmor, by an annotation", try: running(func(template *corev1.PodTemplateSpec) {
			template.Annotations = map[string]string{corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + "main": corev1.DeprecatedAppArmorBetaProfileNameUnconfined}
		})},
		{Name: "run a WebApp's Deployment as another type of SELinux", try: inPod(&corev1.PodSecurityContext{
			SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"},
		})},
		{Name: "run a WebApp's Deployment as another role of SELinux", try: inPod(&corev1.PodSecurityContext{
			SELinuxOptions: &corev1.SELinuxOptions{Role: "sysadm_r"},
		})},
		{Name: "run a WebApp's Deployment with other sysctls", try: inPod(&corev1.PodSecurityContext{
			Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "65536"}},
		})},
		{Name: "have a node call another address by the check of a WebApp", try: inContainer(func(c *corev1.Container) {
			c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: metadataService}}
		})},
		{Name: "have a node call another address by the hook of a WebApp", try: inContainer(func(c *corev1.Container) {
			c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{HTTPGet: metadataService}}
		})},
	}
}

// workloadName is the name of the WebApp whose parts are tried.
const workloadName = "escaped"

// notServed is a version of which there are no WebApps.
const notServed = "apps.plimsoll.dev/v999"

// creatingService creates the Service of a WebApp, with a change.
func creatingService(change func(*corev1.Service)) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		s := &corev1.Service{ObjectMeta: ofWebApp(workloadName), Spec: corev1.ServiceSpec{
			Selector: map[string]string{v1.LabelWebApp: workloadName}, Ports: []corev1.ServicePort{{Port: 80}},
		}}
		change(s)
		_, err := p.CoreV1().Services(escapeTargets).Create(ctx, s, metav1.CreateOptions{DryRun: dry})
		return err
	}
}

// creatingBudget creates the PodDisruptionBudget of a WebApp, with a change.
func creatingBudget(change func(*policyv1.PodDisruptionBudget)) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: ofWebApp(workloadName), Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelWebApp: workloadName}}, MinAvailable: ptr.To(intstr.FromInt32(1)),
		}}
		change(b)
		_, err := p.PolicyV1().PodDisruptionBudgets(escapeTargets).Create(ctx, b, metav1.CreateOptions{DryRun: dry})
		return err
	}
}

// creatingAutoscaler creates the HorizontalPodAutoscaler of a WebApp, with a change.
func creatingAutoscaler(change func(*autoscalingv2.HorizontalPodAutoscaler)) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: ofWebApp(workloadName), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: workloadName}, MaxReplicas: 2,
		}}
		change(h)
		_, err := p.AutoscalingV2().HorizontalPodAutoscalers(escapeTargets).Create(ctx, h, metav1.CreateOptions{DryRun: dry})
		return err
	}
}

// ofWebApp is the metadata of what a WebApp of that name controls.
func ofWebApp(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "apps.plimsoll.dev/v1", Kind: "WebApp", Name: name, UID: "of-nobody", Controller: ptr.To(true),
	}}}
}

// deletingDeployment deletes the Deployment of a WebApp that is there.
func deletingDeployment(options metav1.DeleteOptions) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		options.DryRun = dry
		return p.AppsV1().Deployments(escapeTargets).Delete(ctx, abandoned, options)
	}
}

// changingDeployment changes the metadata of the Deployment of a WebApp that is there.
func changingDeployment(metadata string) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		kind, data, options := patch(`{"metadata":` + metadata + `}`)
		_, err := p.AppsV1().Deployments(escapeTargets).Patch(ctx, abandoned, kind, data, options)
		return err
	}
}

// partDeployment is the Deployment of a WebApp of that name.
func partDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{v1.LabelWebApp: name}
	pod := pausePod("", "").Spec
	pod.ServiceAccountName = name
	return &appsv1.Deployment{ObjectMeta: ofWebApp(name), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)}, Spec: pod},
	}}
}

// creatingDeployment creates the Deployment of a WebApp, with a change.
func creatingDeployment(namespace string, change func(*appsv1.Deployment)) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		d := partDeployment(workloadName)
		change(d)
		_, err := p.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{DryRun: dry})
		return err
	}
}
