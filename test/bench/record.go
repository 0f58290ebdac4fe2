package main

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// minimalCall is the least size of a recorded call: what pods of real services come to.
const minimalCall = 6 << 10

// A recording is the body of an admission call as an API server has sent it, with what names its pod's origin.
type recording struct {
	body                              []byte
	request, namespace, owner, ownerU string
}

// recordCall has a real ReplicaSet controller make a pod, and keeps the call that the API server makes about it.
func recordCall(ctx context.Context, m *fleet.Member) (*recording, error) {
	namespace, err := m.NewNamespace(ctx, "record", nil)
	if err != nil {
		return nil, err
	}
	calls := make(chan []byte, 16)
	hook, err := m.NewHook(ctx, fleet.HookOptions{Name: "recorder", Namespace: namespace, Mutating: true, Decide: func(body []byte) string {
		select {
		case calls <- body:
		default: // one is enough
		}
		return ""
	}})
	if err != nil {
		return nil, err
	}
	w, err := m.Create(ctx, serviceLike(namespace))
	if err != nil {
		return nil, err
	}
	select {
	case body := <-calls:
		recorded, err := readRecording(body)
		if err != nil {
			return nil, err
		}
		if err := hook.Remove(ctx); err != nil {
			return nil, err
		}
		return recorded, discard(ctx, w)
	case <-ctx.Done():
		return nil, fmt.Errorf("record an admission call: %w", ctx.Err())
	}
}

func readRecording(body []byte) (*recording, error) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
		return nil, fmt.Errorf("record an admission call: not a review: %w", err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
		return nil, fmt.Errorf("record an admission call: not a pod: %w", err)
	}
	owner := metav1.GetControllerOf(&pod)
	if owner == nil {
		return nil, fmt.Errorf("record an admission call: the pod has no controller")
	}
	if len(body) < minimalCall {
		return nil, fmt.Errorf("record an admission call: it has %d bytes, want at least %d", len(body), minimalCall)
	}
	return &recording{
		body: body, request: string(review.Request.UID), namespace: review.Request.Namespace,
		owner: owner.Name, ownerU: string(owner.UID),
	}, nil
}

// serviceLike is a Deployment whose pods look like those of a service in production: two containers with probes, limits,
// environment and mounts. It never becomes ready here, and need not.
func serviceLike(namespace string) *appsv1.Deployment {
	deployment := fleet.Deployment(namespace, "checkout", 1, nil)
	template := &deployment.Spec.Template
	template.Labels["app.kubernetes.io/name"] = "checkout"
	template.Labels["app.kubernetes.io/version"] = "4.12.0"
	template.Annotations = map[string]string{
		"prometheus.io/scrape": "true", "prometheus.io/port": "9102",
		"example.com/owner": `{"team":"Kasse/Zürich","pager":"checkout-oncall"}`,
	}
	template.Spec = corev1.PodSpec{
		NodeSelector:                  map[string]string{corev1.LabelOSStable: "linux"},
		TerminationGracePeriodSeconds: ptr.To[int64](45),
		Tolerations:                   []corev1.Toleration{{Key: "example.com/dedicated", Value: "shop", Effect: corev1.TaintEffectNoSchedule}},
		Containers:                    []corev1.Container{serviceContainer(), proxyContainer()},
		Volumes: []corev1.Volume{
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "checkout"}}}},
		},
	}
	return deployment
}

func serviceContainer() corev1.Container {
	return corev1.Container{
		Name: "checkout", Image: "images.example.com/shop/checkout:4.12.0",
		Args:  []string{"--listen=:8080", "--metrics=:9102", "--currency=CHF"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "metrics", ContainerPort: 9102}},
		Env: []corev1.EnvVar{
			{Name: "LOG_LEVEL", Value: "info"}, {Name: "GOMEMLIMIT", Value: "450MiB"},
			{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "DB_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "checkout-db"}, Key: "password"}}},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("512Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
		ReadinessProbe: probe("/ready"), LivenessProbe: probe("/live"),
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true)},
		VolumeMounts:    []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}, {Name: "config", MountPath: "/etc/checkout", ReadOnly: true}},
	}
}

func proxyContainer() corev1.Container {
	return corev1.Container{
		Name: "proxy", Image: "images.example.com/mesh/proxy:1.29.2",
		Ports:        []corev1.ContainerPort{{Name: "mesh", ContainerPort: 15090}},
		VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
	}
}

func probe(path string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http")}},
		PeriodSeconds: 5,
	}
}
