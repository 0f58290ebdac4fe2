package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Keys are the labels and annotations of the configuration that replicas get.
var Keys = policy.Keys{Prefix: policy.DefaultPrefix}

// AppLabel is on every pod of a workload made here, with the workload's name.
const AppLabel = "app"

// A Workload names a Deployment, StatefulSet, ReplicaSet or, with its group in Kind, another workload of a member.
type Workload struct {
	Member                *Member
	Kind, Namespace, Name string

	version schema.GroupVersionKind // of one that has no Go type
}

// String names it for messages.
func (w *Workload) String() string {
	return fmt.Sprintf("%s %s/%s of %s", w.Kind, w.Namespace, w.Name, w.Member.Name)
}

// Enabled are the labels of enabled workloads and namespaces.
func Enabled() map[string]string { return map[string]string{Keys.Enabled(): "true"} }

// Policy are the annotations that ask for a share of replicas on spot, in percent, and a floor of on-demand replicas.
func Policy(percent, floor int) map[string]string {
	return map[string]string{Keys.SpotPercentage(): strconv.Itoa(percent), Keys.MinOnDemand(): strconv.Itoa(floor)}
}

// Want is the formula, written down once more so that what it is tested with is not what is tested.
func Want(replicas, percent, floor int) (spot, onDemand int) {
	spot = max(min(replicas*percent/100, replicas-floor), 0)
	return spot, replicas - spot
}

// NewNamespace makes a namespace with these labels and waits until pods can be made in it.
func (m *Member) NewNamespace(ctx context.Context, prefix string, labels map[string]string) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-", Labels: labels}}
	if err := m.Client().Create(ctx, namespace); err != nil {
		return "", fmt.Errorf("member %s: make a namespace: %w", m.Name, err)
	}
	err := Await(ctx, "the service account of namespace "+namespace.Name, func(ctx context.Context) (bool, error) {
		err := m.Client().Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, err
	})
	return namespace.Name, err
}

// DeleteNamespace starts the removal of a namespace with all that is in it.
func (m *Member) DeleteNamespace(ctx context.Context, name string) error {
	return client.IgnoreNotFound(m.Client().Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// Deployment is one of simple pods, enabled, with these annotations.
func Deployment(namespace, name string, replicas int, annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: Enabled(), Annotations: annotations},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{AppLabel: name}},
			Template: podTemplate(name),
		},
	}
}

// StatefulSet is one of simple pods, enabled, with these annotations, whose pods may start all at once.
func StatefulSet(namespace, name string, replicas int, annotations map[string]string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: Enabled(), Annotations: annotations},
		Spec: appsv1.StatefulSetSpec{
			Replicas:            ptr.To(int32(replicas)),
			Selector:            &metav1.LabelSelector{MatchLabels: map[string]string{AppLabel: name}},
			Template:            podTemplate(name),
			PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}
}

// ReplicaSet is one of simple pods without a Deployment, enabled, with these annotations.
func ReplicaSet(namespace, name string, replicas int, annotations map[string]string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: Enabled(), Annotations: annotations},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{AppLabel: name}},
			Template: podTemplate(name),
		},
	}
}

func podTemplate(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{AppLabel: name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "images.example.com/app:1"}}},
	}
}

// Create makes a Deployment, StatefulSet, ReplicaSet or, without a Go type, another workload.
func (m *Member) Create(ctx context.Context, object client.Object) (*Workload, error) {
	w := &Workload{Member: m, Namespace: object.GetNamespace(), Name: object.GetName()}
	switch object := object.(type) {
	case *unstructured.Unstructured:
		w.version = object.GroupVersionKind()
		w.Kind = w.version.Kind + "." + w.version.Group
	case *appsv1.ReplicaSet:
		w.Kind = "ReplicaSet"
	case *appsv1.Deployment:
		w.Kind = "Deployment"
	case *appsv1.StatefulSet:
		w.Kind = "StatefulSet"
	default:
		return nil, fmt.Errorf("member %s: %T is no workload", m.Name, object)
	}
	if err := m.Client().Create(ctx, object); err != nil {
		return nil, fmt.Errorf("make %s: %w", w, err)
	}
	return w, nil
}

// object is an empty object with the workload's name.
func (w *Workload) object() client.Object {
	meta := metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}
	switch {
	case !w.version.Empty():
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(w.version)
		object.SetNamespace(w.Namespace)
		object.SetName(w.Name)
		return object
	case w.Kind == "StatefulSet":
		return &appsv1.StatefulSet{ObjectMeta: meta}
	case w.Kind == "ReplicaSet":
		return &appsv1.ReplicaSet{ObjectMeta: meta}
	}
	return &appsv1.Deployment{ObjectMeta: meta}
}

// Scale asks for another number of replicas.
func (w *Workload) Scale(ctx context.Context, replicas int) error {
	return w.patch(ctx, map[string]any{"spec": map[string]any{"replicas": replicas}})
}

// Annotate sets annotations; those that are there and not named stay.
func (w *Workload) Annotate(ctx context.Context, annotations map[string]string) error {
	return w.patch(ctx, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// Label sets labels of the workload; those that are there and not named stay.
func (w *Workload) Label(ctx context.Context, labels map[string]string) error {
	return w.patch(ctx, map[string]any{"metadata": map[string]any{"labels": labels}})
}

func (w *Workload) patch(ctx context.Context, change any) error {
	content, err := json.Marshal(change)
	if err != nil {
		return err
	}
	if err := w.Member.Client().Patch(ctx, w.object(), client.RawPatch(types.MergePatchType, content)); err != nil {
		return fmt.Errorf("change %s: %w", w, err)
	}
	return nil
}

// Delete starts the removal of the workload and its pods.
func (w *Workload) Delete(ctx context.Context) error {
	return client.IgnoreNotFound(w.Member.Client().Delete(ctx, w.object(), client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// Retemplate has the pods run another image.
func (w *Workload) Retemplate(ctx context.Context, image string) error {
	return w.patch(ctx, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []map[string]any{{"name": "app", "image": image}},
	}}}})
}
