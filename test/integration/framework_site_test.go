package integration

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// gadget is a custom resource whose status the framework keeps.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              gadgetSpec   `json:"spec,omitempty"`
	Status            gadgetStatus `json:"status,omitempty"`
}

type gadgetSpec struct {
	Image         string `json:"image,omitempty"`
	Label         string `json:"label,omitempty"`
	Replicas      *int32 `json:"replicas,omitempty"`
	LeaveReplicas bool   `json:"leaveReplicas,omitempty"`
	NodePort      int32  `json:"nodePort,omitempty"`
}

type gadgetStatus struct {
	reconcile.Status `json:",inline"`
	Image            string `json:"image,omitempty"`
}

func (g *gadget) CommonStatus() *reconcile.Status { return &g.Status.Status }

func (g *gadget) DeepCopyObject() runtime.Object {
	out := *g
	g.DeepCopyInto(&out.ObjectMeta)
	g.Status.DeepCopyInto(&out.Status.Status)
	if g.Spec.Replicas != nil {
		replicas := *g.Spec.Replicas
		out.Spec.Replicas = &replicas
	}
	return &out
}

type gadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []gadget `json:"items"`
}

func (l *gadgetList) DeepCopyObject() runtime.Object {
	out := &gadgetList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*gadget))
	}
	return out
}

var (
	gadgetVersion = schema.GroupVersion{Group: "test.plimsoll.dev", Version: "v1"}
	gadgetScheme  = func() *runtime.Scheme {
		s := runtime.NewScheme()
		utilruntime.Must(clientgoscheme.AddToScheme(s))
		s.AddKnownTypes(gadgetVersion, &gadget{}, &gadgetList{})
		metav1.AddToGroupVersion(s, gadgetVersion)
		return s
	}()
)

// gadgetDefinition is the kind's CRD: whatever the fields, with a status of its own.
func gadgetDefinition() *unstructured.Unstructured {
	loose := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gadgets.test.plimsoll.dev"},
		"spec": map[string]any{
			"group": gadgetVersion.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": "gadget", "listKind": "gadgetList", "plural": "gadgets", "singular": "gadget"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": loose, "status": loose},
				}},
			}},
		},
	}}
}

// gadgetSite is a member with gadgets, and the controllers of a spec.
type gadgetSite struct {
	*reconcileSite
}

func newGadgetSite(t *testing.T, c *kube.Cluster, build func(s *reconcileSite)) *gadgetSite {
	t.Helper()
	s := &gadgetSite{newReconcileSiteOf(t, c, gadgetScheme, build)}
	var err error
	s.client, err = client.New(c.Config(), client.Options{Scheme: gadgetScheme})
	s.g.Expect(err).NotTo(HaveOccurred())
	s.join("a")
	s.awaitReady("a")
	return s
}

// make creates a gadget.
func (s *gadgetSite) make(name string, edit func(*gadget)) {
	s.t.Helper()
	g := &gadget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	if edit != nil {
		edit(g)
	}
	s.g.Expect(s.client.Create(s.ctx, g)).To(Succeed())
}

// readAs reads an object of the site's namespace, which must be there.
func readAs[T client.Object](s *gadgetSite, name string, obj T) T {
	s.t.Helper()
	s.g.Expect(s.client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, obj)).To(Succeed())
	return obj
}

// editAs changes an object as a person does, over whatever happens meanwhile.
func editAs[T client.Object](s *gadgetSite, name string, obj T, change func(T)) {
	s.t.Helper()
	s.g.Eventually(func() error {
		if err := s.client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, obj); err != nil {
			return err
		}
		change(obj)
		return s.client.Update(s.ctx, obj, client.FieldOwner("kubectl-edit"))
	}).Should(Succeed())
}

// condition is a gadget's condition as "Status/Reason: message"; empty when it is absent.
func (s *gadgetSite) condition(name, kind string) func() string {
	return func() string { return s.conditions(name, kind)[0] }
}

// conditions are several of them as one read finds them; empty: it is absent.
func (s *gadgetSite) conditions(name string, kinds ...string) []string {
	all, found := readAs(s, name, &gadget{}).Status.Conditions, make([]string, len(kinds))
	for i, kind := range kinds {
		if c := meta.FindStatusCondition(all, kind); c != nil {
			found[i] = string(c.Status) + "/" + c.Reason + ": " + c.Message
		}
	}
	return found
}

// run orders a reconcile and waits for its end.
func (s *gadgetSite) run(controller, name string) reconcile.Record {
	s.t.Helper()
	order, err := s.runtime.Requeue(s.key(controller, "a", name))
	s.g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithTimeout(s.ctx, memberPatience)
	defer cancel()
	operation, err := s.runtime.Wait(ctx, order.ID)
	s.g.Expect(err).NotTo(HaveOccurred())
	return operation.Record
}

// workshop reconciles gadgets into Deployments and Services.
type workshop struct{}

func (workshop) Reconcile(ctx context.Context, req reconcile.Request[*gadget]) (reconcile.Result, error) {
	spec := req.Object.Spec
	labels := map[string]string{"gadget": req.Object.Name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: req.Object.Namespace, Name: req.Object.Name, Labels: map[string]string{"gadget": req.Object.Name}},
		Spec: appsv1.DeploymentSpec{
			Replicas: spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: spec.Image}}},
			},
		},
	}
	if spec.Label != "" {
		deployment.Labels["label"] = spec.Label
	}
	var options []reconcile.ApplyOption
	if spec.LeaveReplicas {
		deployment.Spec.Replicas = nil
		options = append(options, reconcile.Leave("spec.replicas"))
	}
	if _, err := req.Apply(ctx, deployment, options...); err != nil {
		return reconcile.Done(), err
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: req.Object.Namespace, Name: req.Object.Name}}
	if spec.NodePort == 0 {
		_, err := req.Delete(ctx, service)
		req.Object.Status.Image = spec.Image
		return reconcile.Done(), err
	}
	service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: labels, Ports: []corev1.ServicePort{{Port: 80, NodePort: spec.NodePort}}}
	_, err := req.Apply(ctx, service)
	req.Object.Status.Image = spec.Image
	return reconcile.Done(), err
}

// buildWorkshop registers the controller "workshop".
func buildWorkshop(s *reconcileSite) {
	s.mustRegister(reconcile.For[*gadget](s.runtime, "workshop", workshop{}).Owns(clusters.Kind{Object: &appsv1.Deployment{}}).
		Owns(clusters.Kind{Object: &corev1.Service{}}).StalledRetry(500 * time.Millisecond).Register())
}
