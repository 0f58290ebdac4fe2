package webapp

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// ControllerName is the name of the controller in the ledger, the metrics and the API.
const ControllerName = "webapp"

// refusedRetry is when something that the API server refused is tried again, as no watch reports that a quota was raised.
const refusedRetry = 30 * time.Second

// Schedule is how often, and by how many workers, WebApps are looked at; zero values are the framework's defaults.
type Schedule struct {
	Resync  time.Duration
	Workers int
}

// Register adds the reconciler to a runtime: it runs in every member that has the CRD.
func (r *Reconciler) Register(rt *reconcile.Runtime, schedule Schedule) (*reconcile.Controller, error) {
	b := reconcile.For(rt, ControllerName, r).
		Owns(deploymentKind(r.Keys)).
		Owns(ours(&corev1.Service{})).
		Owns(ours(&corev1.ServiceAccount{})).
		Owns(budgetKind()).
		Owns(ours(&autoscalingv2.HorizontalPodAutoscaler{})).
		Watches(namespaceKind(), inNamespace, reconcile.When(r.enablesOtherwise)).
		StalledRetry(refusedRetry)
	if schedule.Workers > 0 {
		b = b.Workers(schedule.Workers)
	}
	controller, err := b.Resync(schedule.Resync).Register()
	if err != nil {
		return nil, err
	}
	r.Placer.Notify(func(member, kind, namespace, name string) {
		if kind == spot.KindDeployment { // it has the name of its WebApp
			controller.Wake(member, types.NamespacedName{Namespace: namespace, Name: name})
		}
	})
	return controller, nil
}

// Kinds are those of the controller, as members are to have them cached. A member without WebApps lacks nothing: neither
// WebApps, nor the right to look at the kinds of which only they consist.
func Kinds(controller *reconcile.Controller) []clusters.Kind {
	kinds := controller.Kinds()
	for i := range kinds {
		switch kinds[i].Object.(type) {
		case *v1.WebApp:
			kinds[i].Optional = true
		case *corev1.Service, *corev1.ServiceAccount, *policyv1.PodDisruptionBudget, *autoscalingv2.HorizontalPodAutoscaler:
			kinds[i].Optional, kinds[i].Companion = true, true
		}
	}
	return kinds
}

// ours caches what belongs to WebApps of a kind, and nothing of others.
func ours(object client.Object) clusters.Kind {
	marked, err := labels.NewRequirement(v1.LabelWebApp, selection.Exists, nil)
	if err != nil {
		panic(err) // a constant: a programming error
	}
	return clusters.Kind{Object: object, Labels: labels.NewSelector().Add(*marked)}
}

// deploymentKind is package spot's, which keeps little of a Deployment, and for those of WebApps everything.
func deploymentKind(keys policy.Keys) clusters.Kind {
	kind := spot.DeploymentKind(keys)
	kind.Keep = func(from, into client.Object) {
		if !ofWebApp(from) {
			return
		}
		src, dst := from.(*appsv1.Deployment), into.(*appsv1.Deployment)
		dst.Labels, dst.Annotations, dst.Spec, dst.Status = src.Labels, src.Annotations, src.Spec, src.Status
	}
	return kind
}

// budgetKind is of all PodDisruptionBudgets, as package spot's is, and keeps only those of WebApps.
func budgetKind() clusters.Kind {
	return clusters.Kind{Object: &policyv1.PodDisruptionBudget{}, Keep: func(from, into client.Object) {
		if !ofWebApp(from) {
			return
		}
		src, dst := from.(*policyv1.PodDisruptionBudget), into.(*policyv1.PodDisruptionBudget)
		dst.Labels, dst.Annotations, dst.Spec = src.Labels, src.Annotations, src.Spec
	}}
}

func ofWebApp(object client.Object) bool {
	ref := metav1.GetControllerOfNoCopy(object)
	if ref == nil || ref.Kind != v1.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == v1.GroupVersion.Group
}

// namespaceKind keeps the labels, one of which enables placement.
func namespaceKind() clusters.Kind {
	return clusters.Kind{Object: &corev1.Namespace{}, Keep: func(from, into client.Object) { into.SetLabels(from.GetLabels()) }}
}

// enablesOtherwise reports whether a namespace enables placement since, or does no longer: all else that is written to it concerns no
// WebApp.
func (r *Reconciler) enablesOtherwise(before, now client.Object) bool {
	return before == nil || before.GetLabels()[r.Keys.Enabled()] != now.GetLabels()[r.Keys.Enabled()]
}

// inNamespace wakes the WebApps of a namespace that ask for placement.
func inNamespace(ctx context.Context, member *reconcile.Member, namespace client.Object) []types.NamespacedName {
	var all v1.WebAppList
	if err := member.Reader.List(ctx, &all, client.InNamespace(namespace.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // not cached: there is nothing to wake
	}
	var keys []types.NamespacedName
	for i := range all.Items {
		if all.Items[i].Spec.Spot != nil {
			keys = append(keys, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return keys
}

// Rights are what WebApps need in a member beyond what spot placement does, by group and resource.
func Rights() []clusters.Access {
	keep := []string{"get", "list", "watch", "create", "patch", "delete"}
	read := []string{"get", "list", "watch"}
	return []clusters.Access{
		{Group: v1.GroupVersion.Group, Resource: "webapps", Verbs: read},
		{Group: v1.GroupVersion.Group, Resource: "webapps", Subresource: "status", Verbs: []string{"patch"}},
		{Group: v1.GroupVersion.Group, Resource: "webapps", Subresource: "finalizers", Verbs: []string{"update"}},
		{Group: "apps", Resource: "deployments", Verbs: keep},
		{Resource: "services", Verbs: keep},
		{Resource: "serviceaccounts", Verbs: keep},
		{Group: "policy", Resource: "poddisruptionbudgets", Verbs: keep},
		{Group: "autoscaling", Resource: "horizontalpodautoscalers", Verbs: keep},
		{Resource: "configmaps", Verbs: read},
	}
}

// SecretRights are what WebApps that name Secrets need in their namespaces: Kubernetes has no right to read only the Secrets that
// another object names, nor to read metadata alone.
func SecretRights() []clusters.Access {
	return []clusters.Access{{Resource: "secrets", Verbs: []string{"get", "list", "watch"}}}
}

// Access is what a member that has WebApps must permit, so that it can say what is missing. Secrets and ConfigMaps are left
// out: an owner may well grant them in some namespaces only, and WebApps elsewhere do without.
func Access() []clusters.Access {
	var needed []clusters.Access
	for _, right := range Rights() {
		if right.Group == "" && right.Resource == "configmaps" {
			continue
		}
		right.Beside, right.For = &v1.WebApp{}, "keeping WebApps"
		needed = append(needed, right)
	}
	return needed
}
