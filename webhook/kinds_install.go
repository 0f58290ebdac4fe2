package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/crd"
)

// Names of the controllers of a [KindInstaller].
const (
	DefinitionController = "webapp-definition"
	ValidationController = "webapp-validation"
)

// Reasons of the state of the WebApp kind in a member, beside ReasonMissing, ReasonCurrent and ReasonFailed.
const (
	// ReasonRefused: the definition there must not be replaced by ours.
	ReasonRefused = "Refused"
	// ReasonOutdated: its owner keeps it, and it is not what this hub needs.
	ReasonOutdated = "Outdated"
)

// definitionManager is the field manager of what the hub writes into definitions.
const definitionManager = "plimsoll-hub"

// KindInstaller keeps what a member is to know of WebApps current: the definition, with this hub for its converter, and the
// configuration by which the member asks what may be stored. It makes neither: `plimsoll webapps install` does. Members that are
// registered for named namespaces are left alone, for the definition is the whole cluster's.
type KindInstaller struct {
	options InstallerOptions

	mu          sync.Mutex
	definitions map[string]Installation // by member
	validations map[string]Installation // by member
	applied     map[string]appliedDefinition
}

// appliedDefinition is what a member's definition was when it was last as it should be.
type appliedDefinition struct {
	uid        types.UID
	generation int64
	content    string
}

// NewKindInstaller makes one from the options of an [Installer].
func NewKindInstaller(options InstallerOptions) (*KindInstaller, error) {
	checked, err := NewInstaller(options)
	if err != nil {
		return nil, err
	}
	return &KindInstaller{
		options: checked.options, definitions: map[string]Installation{}, validations: map[string]Installation{},
		applied: map[string]appliedDefinition{},
	}, nil
}

// Register adds both controllers to a runtime.
func (k *KindInstaller) Register(rt *reconcile.Runtime) ([]*reconcile.Controller, error) {
	definitions, err := reconcile.For(rt, DefinitionController, definitionKeeper{k}).Kind(clusters.Kind{
		Object: &apiextensionsv1.CustomResourceDefinition{}, Fields: fields.OneTermEqualSelector("metadata.name", crd.Name), Keep: keepDefinition,
	}).Register()
	if err != nil {
		return nil, err
	}
	validations, err := reconcile.For(rt, ValidationController, validationKeeper{k}).Kind(clusters.Kind{
		Object: &admissionregistrationv1.ValidatingWebhookConfiguration{}, Fields: fields.OneTermEqualSelector("metadata.name", k.options.Name),
	}).Register()
	if err != nil {
		return nil, err
	}
	return []*reconcile.Controller{definitions, validations}, nil
}

// Kinds are those of a controller of ours, as members are to have them cached: a member without WebApps lacks nothing.
func (k *KindInstaller) Kinds(controller *reconcile.Controller) []clusters.Kind {
	kinds := controller.Kinds()
	for i := range kinds {
		kinds[i].Optional, kinds[i].Companion = true, true
	}
	return kinds
}

// keepDefinition leaves out the schemas, which are most of a definition; its generation tells when they changed.
func keepDefinition(from, into client.Object) {
	src, dst := from.(*apiextensionsv1.CustomResourceDefinition), into.(*apiextensionsv1.CustomResourceDefinition)
	dst.Annotations, dst.Spec.Conversion = src.Annotations, src.Spec.Conversion
	dst.Spec.Versions = nil
	for _, v := range src.Spec.Versions {
		dst.Spec.Versions = append(dst.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v.Name, Served: v.Served, Storage: v.Storage})
	}
	dst.Status.StoredVersions = src.Status.StoredVersions
}

// State tells how the WebApp kind of a member was when last seen: what is wrong with its definition, else with the
// configuration beside it.
func (k *KindInstaller) State(member string) Installation {
	k.mu.Lock()
	defer k.mu.Unlock()
	definition, known := k.definitions[member]
	if !known {
		return Installation{ReasonMissing, "the hub sees no definition of WebApps in the member: " + installHow + " makes it, and lets the hub keep it current"}
	}
	if definition.Reason != ReasonCurrent {
		return definition
	}
	switch validation, known := k.validations[member]; {
	case !known:
		return Installation{ReasonMissing, fmt.Sprintf(
			"the hub sees no ValidatingWebhookConfiguration %s in the member: %s makes it; until then WebApps are stored without the hub's policy", k.options.Name, installHow)}
	case validation.Reason != ReasonCurrent:
		return validation
	}
	return definition
}

// installHow says who makes what is missing.
const installHow = "`plimsoll webapps install`, or what is in deploy/member/webapps,"

func (k *KindInstaller) set(states map[string]Installation, member string, is Installation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	states[member] = is
}

// Forget drops what is known of a member.
func (k *KindInstaller) Forget(member string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.definitions, member)
	delete(k.validations, member)
	delete(k.applied, member)
}

// tenant tells whether a member is only some namespaces of a cluster.
func (k *KindInstaller) tenant(member string) bool { return k.options.Namespaces(member) != nil }

// definitionKeeper reconciles the definition.
type definitionKeeper struct{ *KindInstaller }

// Forget notes that the definition is gone.
func (d definitionKeeper) Forget(_ context.Context, member string, _ types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.definitions, member)
	delete(d.applied, member)
}

// Reconcile brings the definition to ours, unless it must not be, or its owner keeps it.
func (d definitionKeeper) Reconcile(ctx context.Context, req reconcile.Request[*apiextensionsv1.CustomResourceDefinition]) (reconcile.Result, error) {
	there := req.Object
	if there.Name != crd.Name || there.DeletionTimestamp != nil || d.tenant(req.Member) {
		return reconcile.Done(), nil
	}
	token, err := d.options.Tokens.For(ForConversions).Current(req.Member)
	if err != nil {
		return reconcile.Done(), err
	}
	wanted := d.options.Wanted()
	ours := crd.Converting(ConvertURL(wanted.BaseURL, req.Member, token), wanted.Bundle)
	if refusal := crd.Refusal(there); refusal != "" {
		d.set(d.definitions, req.Member, Installation{ReasonRefused, "the definition of WebApps is left as it is: " + refusal})
		return reconcile.Done(), nil
	}
	difference := crd.Differs(there, ours)
	if !crd.Kept(&there.ObjectMeta) {
		d.set(d.definitions, req.Member, keptByOthers(difference))
		return reconcile.Done(), nil
	}
	if err := d.bring(ctx, req, ours, difference != ""); err != nil {
		err = withoutToken(fmt.Errorf("member %s: definition %s: apply: %w", req.Member, crd.Name, err), token)
		d.set(d.definitions, req.Member, Installation{ReasonFailed, plain.Text(err.Error(), maxMessage)})
		return reconcile.Done(), err
	}
	d.set(d.definitions, req.Member, Installation{ReasonCurrent, "WebApps are known in all versions, and kept current"})
	return reconcile.Done(), nil
}

func keptByOthers(difference string) Installation {
	if difference != "" {
		return Installation{ReasonOutdated, "its owner keeps the definition of WebApps (" + crd.KeepAnnotation + "), and it should be changed: " + difference}
	}
	return Installation{ReasonCurrent, "WebApps are known in all versions; their owner keeps the definition"}
}

// bring applies ours, unless nothing has changed since that was done last: of what the cache does not show, the generation
// tells, and of annotations, which have none, the difference.
func (d definitionKeeper) bring(ctx context.Context, req reconcile.Request[*apiextensionsv1.CustomResourceDefinition],
	ours *apiextensionsv1.CustomResourceDefinition, differs bool) error {
	ours.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	content, err := json.Marshal(ours)
	if err != nil {
		return err
	}
	is := appliedDefinition{uid: req.Object.UID, generation: req.Object.Generation, content: string(content)}
	d.mu.Lock()
	settled := d.applied[req.Member] == is
	d.mu.Unlock()
	if settled && !differs {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ours)
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	applied := &unstructured.Unstructured{Object: fields}
	applied.SetUID(req.Object.UID) // never makes one that was deleted meanwhile
	if err := req.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(definitionManager), client.ForceOwnership); err != nil {
		return err
	}
	if applied.GetGeneration() != is.generation {
		req.Events.Normal("DefinitionUpdated", "Plimsoll brought the definition of WebApps up to date")
	}
	is.generation = applied.GetGeneration()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.applied[req.Member] = is
	return nil
}

// validationKeeper reconciles the configuration by which a member asks what may be stored.
type validationKeeper struct{ *KindInstaller }

// Forget notes that the configuration is gone.
func (v validationKeeper) Forget(_ context.Context, member string, _ types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.validations, member)
}

// Reconcile makes the configuration what it should be, and writes nothing when it is.
func (v validationKeeper) Reconcile(ctx context.Context, req reconcile.Request[*admissionregistrationv1.ValidatingWebhookConfiguration]) (reconcile.Result, error) {
	if req.Object.Name != v.options.Name || req.Object.DeletionTimestamp != nil || v.tenant(req.Member) {
		return reconcile.Done(), nil
	}
	changed, err := v.bring(ctx, req)
	if apierrors.IsConflict(err) {
		return reconcile.Requeue("the webhook configuration changed meanwhile"), nil
	}
	if err != nil {
		v.set(v.validations, req.Member, Installation{ReasonFailed, plain.Text(err.Error(), maxMessage)})
		return reconcile.Done(), err
	}
	v.set(v.validations, req.Member, Installation{ReasonCurrent, "the member asks the hub what may be stored"})
	if changed {
		req.Events.Normal("WebhookConfigured", "Plimsoll brought the webhook up to date")
	}
	return reconcile.Done(), nil
}

// bring patches the configuration if it differs.
func (v validationKeeper) bring(ctx context.Context, req reconcile.Request[*admissionregistrationv1.ValidatingWebhookConfiguration]) (changed bool, err error) {
	token, err := v.options.Tokens.For(ForWebApps).Current(req.Member)
	if err != nil {
		return false, err
	}
	desired := WebAppValidation(v.options.Wanted(), req.Member, token)
	if equality.Semantic.DeepEqual(req.Object.Webhooks, desired) {
		return false, nil
	}
	before := req.Object.DeepCopy()
	req.Object.Webhooks = desired
	if err := req.Client.Patch(ctx, req.Object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, withoutToken(fmt.Errorf("member %s: webhook configuration %s: patch: %w", req.Member, req.Object.Name, err), token)
	}
	return true, nil
}
