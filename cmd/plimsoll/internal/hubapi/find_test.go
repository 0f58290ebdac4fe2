package hubapi

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
)

var selected = map[string]string{"app": "hub"}

func pod(name string, ready corev1.ConditionStatus, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: selected},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "side"}, {Name: "hub", Ports: []corev1.ContainerPort{{Name: "grpc", ContainerPort: 9090}}}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

func service(target intstr.IntOrString, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: Service},
		Spec:       corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Name: "rest", TargetPort: intstr.FromInt32(1)}, {Name: GRPCPort, TargetPort: target}}},
	}
}

func TestAPortOfAReadyPodOfTheHubIsForwarded(t *testing.T) {
	named, yes, no := intstr.FromString("grpc"), corev1.ConditionTrue, corev1.ConditionFalse
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = &metav1.Time{}, []string{"x"} }
	for name, c := range map[string]struct {
		objects []runtime.Object
		pod     string
		port    int32
		problem string
	}{
		"by name":         {[]runtime.Object{service(named, selected), pod("a", no, nil), pod("b", yes, nil)}, "b", 9090, ""},
		"by number":       {[]runtime.Object{service(intstr.FromInt32(7), selected), pod("a", yes, nil)}, "a", 7, ""},
		"one leaves":      {[]runtime.Object{service(named, selected), pod("a", yes, leaving), pod("b", yes, nil)}, "b", 9090, ""},
		"none is ready":   {[]runtime.Object{service(named, selected), pod("a", no, nil)}, "", 0, "none of the 1 pods"},
		"others' pods":    {[]runtime.Object{service(named, selected), pod("a", yes, func(p *corev1.Pod) { p.Labels = nil })}, "", 0, "none of the 0 pods"},
		"no such port":    {[]runtime.Object{service(intstr.FromString("other"), selected), pod("a", yes, nil)}, "", 0, "none of the 1 pods"},
		"selects nothing": {[]runtime.Object{service(named, nil), pod("a", yes, nil)}, "", 0, "it selects no pods"},
		"there is no hub": {nil, "", 0, "service/ns/plimsoll-api"},
		"no ready answer": {[]runtime.Object{service(named, selected), pod("a", yes, func(p *corev1.Pod) { p.Status.Conditions = nil })}, "", 0, "none of the 1 pods"},
	} {
		cluster := &Cluster{context: "hub", namespace: "ns", core: fake.NewClientset(c.objects...).CoreV1()}
		found, port, err := cluster.pod(t.Context())
		if found != c.pod || port != c.port || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %q, %d, %v", name, found, port, err)
		}
	}
}

func TestWhatTheHubPublishesIsTaken(t *testing.T) {
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: ConfigMap}, Data: map[string]string{CAKey: "pem", AddressKey: "hub.example:443"}}
	cluster := &Cluster{context: "hub", namespace: "ns", core: fake.NewClientset(published).CoreV1()}
	found, err := cluster.Find(t.Context())
	if err != nil || found.Address != "hub.example:443" || found.ServerName != "" || string(found.CA) != "pem" {
		t.Errorf("%+v, %v", found, err)
	}
	found.Close() // nothing was opened
	published.Data[AddressKey] = "hub.example"
	cluster.core = fake.NewClientset(published).CoreV1()
	if _, err := cluster.Find(t.Context()); err == nil || !strings.Contains(err.Error(), `"hub.example": must be host:port`) {
		t.Errorf("%v", err)
	}
}
