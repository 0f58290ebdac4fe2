package webapp

import (
	"encoding/json"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/crd"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1beta1"
)

// Plural is how the kind is called in URLs and by kubectl.
const Plural = "webapps"

// Module is the kind as a hub takes it in: by the door through which others bring theirs. The hub reads its configuration into a
// policy of the module's own.
func Module() module.Module {
	policy := DefaultPolicy()
	return module.Module{
		Name:        ControllerName,
		Config:      &policy,
		AddToScheme: v1.AddToScheme,
		Register: func(host module.Host) ([]*reconcile.Controller, error) {
			reconciler := &Reconciler{Keys: host.Keys, Placer: host.Placements}
			controller, err := reconciler.Register(host.Runtime, Schedule{Resync: host.Resync, Workers: host.Workers})
			return []*reconcile.Controller{controller}, err
		},
		Kinds:     Kinds,
		Rights:    Access(),
		Resources: []module.Resource{Resource(&policy)},
	}
}

// A Reviewer judges WebApps; [Policy] is one.
type Reviewer interface {
	Review(app, old *v1.WebApp) (refusals field.ErrorList, warnings []string)
	ReviewScale(replicas int32) field.ErrorList
}

// Resource is what members ask a hub about WebApps.
func Resource(reviewer Reviewer) module.Resource {
	return module.Resource{
		Title: "WebApps", Group: v1.GroupVersion.Group, Kind: v1.Kind, Plural: Plural,
		Versions:     []string{v1.GroupVersion.Version, v1beta1.GroupVersion.Version, v1alpha1.GroupVersion.Version},
		AddToScheme:  addVersions,
		Subresources: []string{"scale"},
		Definition:   crd.Definition,
		Parts: []schema.GroupResource{
			{Group: "apps", Resource: "deployments"}, {Resource: "services"}, {Resource: "serviceaccounts"},
			{Group: "policy", Resource: "poddisruptionbudgets"}, {Group: "autoscaling", Resource: "horizontalpodautoscalers"},
		},
		Label:       v1.LabelWebApp,
		Workload:    appsv1.SchemeGroupVersion.WithKind("Deployment"),
		InstallWith: "`plimsoll webapps install`, or what is in deploy/member/webapps,",
		Convert:     Convert,
		Complete: func(object *metav1.ObjectMeta) bool {
			app := &v1.WebApp{ObjectMeta: *object}
			changed := Complete(app)
			object.Labels = app.Labels
			return changed
		},
		Review: func(asked module.Review) (module.Judgement, error) { return review(reviewer, asked) },
	}
}

func addVersions(scheme *runtime.Scheme) error {
	return errors.Join(v1.AddToScheme(scheme), v1beta1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// review judges a WebApp, or a number of replicas for one.
func review(reviewer Reviewer, asked module.Review) (module.Judgement, error) {
	if asked.Subresource == "scale" {
		var scale autoscalingv1.Scale
		if err := json.Unmarshal(asked.Object, &scale); err != nil {
			return module.Judgement{}, unreadable("object")
		}
		return module.Judgement{Refusals: reviewer.ReviewScale(scale.Spec.Replicas)}, nil
	}
	app, old := &v1.WebApp{}, (*v1.WebApp)(nil)
	if err := readDefaulted(asked.Object, app); err != nil {
		return module.Judgement{}, unreadable("object")
	}
	if len(asked.Old) > 0 {
		old = &v1.WebApp{}
		if err := readDefaulted(asked.Old, old); err != nil {
			return module.Judgement{}, unreadable("oldObject")
		}
	}
	refusals, warnings := reviewer.Review(app, old)
	return module.Judgement{Refusals: refusals, Warnings: warnings}, nil
}

// unreadable reports what cannot be read, and nothing of what is in it.
func unreadable(what string) error { return errors.New(what + ": not a WebApp") }

// readDefaulted reads one with its defaults, which an API server has set already.
func readDefaulted(raw []byte, into *v1.WebApp) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return err
	}
	into.Spec.SetDefaults()
	return nil
}
