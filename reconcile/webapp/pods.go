package webapp

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// pods is the template of a WebApp's pods. Nothing in it follows from labels or status, so that only a changed spec.containers,
// spec.envFrom, spec.podSecurity or spec.mountToken starts a rollout.
func pods(app *v1.WebApp) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/name": app.Name}}}
	for key, value := range app.Selector() {
		template.Labels[key] = value
	}
	template.Spec.ServiceAccountName = app.Name
	template.Spec.AutomountServiceAccountToken = new(app.Spec.MountToken)
	if app.Spec.PodSecurity != v1.PodSecurityBaseline {
		template.Spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
	}
	sources := envFrom(app) // the same for all: there may be many of both
	for i := range app.Spec.Containers {
		template.Spec.Containers = append(template.Spec.Containers, container(app, &app.Spec.Containers[i], sources))
	}
	return template
}

func container(app *v1.WebApp, from *v1.Container, sources []corev1.EnvFromSource) corev1.Container {
	c := corev1.Container{Name: from.Name, Image: from.Image, Command: from.Command, Args: from.Args, EnvFrom: sources}
	for _, p := range from.Ports {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: p.Name, ContainerPort: p.ContainerPort, Protocol: corev1.ProtocolTCP})
	}
	for _, e := range from.Env {
		c.Env = append(c.Env, corev1.EnvVar{Name: e.Name, Value: e.Value})
	}
	if r := from.Resources; r != nil {
		c.Resources = corev1.ResourceRequirements{Requests: r.Requests.Kubernetes(), Limits: r.Limits.Kubernetes()}
	}
	if app.Spec.PodSecurity != v1.PodSecurityBaseline {
		c.SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
	if r := from.Readiness; r != nil {
		c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: r.Path, Port: intstr.FromString(r.Port)},
		}}
	}
	return c
}

func envFrom(app *v1.WebApp) []corev1.EnvFromSource {
	var sources []corev1.EnvFromSource
	for _, from := range app.Spec.EnvFrom {
		source := corev1.EnvFromSource{Prefix: from.Prefix}
		var optional *bool
		if from.Optional {
			optional = new(true)
		}
		if from.Secret != "" {
			source.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: from.Secret}, Optional: optional}
		} else {
			source.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: from.ConfigMap}, Optional: optional}
		}
		sources = append(sources, source)
	}
	return sources
}

// needs are the Secrets and ConfigMaps without which pods cannot start, all in the WebApp's own namespace.
func needs(app *v1.WebApp) []reconcile.Dependency {
	var all []reconcile.Dependency
	for _, from := range app.Spec.EnvFrom {
		switch {
		case from.Optional:
		case from.Secret != "":
			all = append(all, reconcile.OnSecret(types.NamespacedName{Namespace: app.Namespace, Name: from.Secret}))
		default:
			all = append(all, reconcile.OnConfigMap(types.NamespacedName{Namespace: app.Namespace, Name: from.ConfigMap}))
		}
	}
	return all
}
