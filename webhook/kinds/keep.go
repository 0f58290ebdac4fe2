package kinds

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

// keepDefinition leaves out the schemas, which are most of a definition; its generation shows when they changed.
func keepDefinition(from, into client.Object) {
	src, dst := from.(*apiextensionsv1.CustomResourceDefinition), into.(*apiextensionsv1.CustomResourceDefinition)
	dst.Annotations, dst.Spec.Conversion = src.Annotations, src.Spec.Conversion
	dst.Spec.Versions = nil
	for _, v := range src.Spec.Versions {
		dst.Spec.Versions = append(dst.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v.Name, Served: v.Served, Storage: v.Storage})
	}
	dst.Status.StoredVersions = src.Status.StoredVersions
}

// eventDefinitionUpdated is the reason of an Event about a definition in a member.
const eventDefinitionUpdated = "DefinitionUpdated" // The hub updated the definition to its own version.

// definitionKeeper reconciles the definitions.
type definitionKeeper struct{ *Installer }

// Forget notes that a definition is gone.
func (d definitionKeeper) Forget(_ context.Context, member string, key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.definitions, memberKind{member, key.Name})
	delete(d.applied, memberKind{member, key.Name})
}

// Reconcile brings the definition to ours, unless it must not be, or its owner keeps it.
func (d definitionKeeper) Reconcile(ctx context.Context, req reconcile.Request[*apiextensionsv1.CustomResourceDefinition]) (reconcile.Result, error) {
	there, kind := req.Object, d.kindOf(req.Object.Name)
	if kind == nil || there.DeletionTimestamp != nil || d.tenant(req.Member) {
		return reconcile.Done(), nil
	}
	conversion, token, err := d.conversion(kind, req.Member)
	if err != nil {
		return reconcile.Done(), err
	}
	if refusal := kind.Definition.Refusal(there); refusal != "" {
		d.setDefinition(req.Member, kind, webhook.Installation{Reason: ReasonRefused, Message: "the definition of " + kind.Title + " is not changed: " + refusal})
		return reconcile.Done(), nil
	}
	difference := kind.Definition.Differs(there, conversion)
	if !kind.Definition.Kept(&there.ObjectMeta) {
		d.setDefinition(req.Member, kind, keptByOthers(kind, difference))
		return reconcile.Done(), nil
	}
	if err := d.bring(ctx, req, kind, conversion, difference != ""); err != nil {
		err = calls.WithoutToken(fmt.Errorf("member %s: definition %s: apply: %w", req.Member, there.Name, err), token)
		d.setDefinition(req.Member, kind, webhook.Installation{Reason: webhook.ReasonFailed, Message: plain.Text(err.Error(), calls.MaxMessage)})
		return reconcile.Done(), err
	}
	d.setDefinition(req.Member, kind, webhook.Installation{Reason: webhook.ReasonCurrent, Message: kind.Title + " are served in all versions, and the hub updates the definition"})
	return reconcile.Done(), nil
}

// conversion is that of a definition as a member should have it, and the token that is in it.
func (d definitionKeeper) conversion(kind *module.Resource, member string) (*apiextensionsv1.CustomResourceConversion, string, error) {
	token, err := d.options.Tokens.For(webhook.ForConversions).Current(member)
	if err != nil || kind.Convert == nil {
		return module.NoConversion(), token, err
	}
	wanted := d.options.Wanted()
	return module.WebhookConversion(ConvertURL(wanted.BaseURL, member, token), wanted.Bundle), token, nil
}

func keptByOthers(kind *module.Resource, difference string) webhook.Installation {
	if difference != "" {
		return webhook.Installation{Reason: ReasonOutdated, Message: "its owner keeps the definition of " + kind.Title + " (" + kind.Definition.KeepAnnotation() +
			"), and must change it: " + difference}
	}
	return webhook.Installation{Reason: webhook.ReasonCurrent, Message: kind.Title + " are served in all versions; their owner updates the definition"}
}

// bring applies ours, unless nothing has changed since that was done last: of what the cache does not show, the generation
// shows that, and of annotations, which have none, the difference.
func (d definitionKeeper) bring(ctx context.Context, req reconcile.Request[*apiextensionsv1.CustomResourceDefinition],
	kind *module.Resource, conversion *apiextensionsv1.CustomResourceConversion, differs bool) error {
	content, err := json.Marshal(conversion) // the rest of it is the same as long as this hub runs
	if err != nil {
		return err
	}
	is := appliedDefinition{uid: req.Object.UID, generation: req.Object.Generation, conversion: sha256.Sum256(content)}
	at := memberKind{req.Member, kind.Definition.Name()}
	d.mu.Lock()
	settled := d.applied[at] == is
	d.mu.Unlock()
	if settled && !differs {
		return nil
	}
	ours := kind.Definition.With(conversion)
	ours.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
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
		req.Events.Normal(eventDefinitionUpdated, "Plimsoll updated the definition of %s", kind.Title)
	}
	is.generation = applied.GetGeneration()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.applied[at] = is
	return nil
}

// validationKeeper reconciles the configuration by which a member asks what may be stored.
type validationKeeper struct{ *Installer }

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
		v.setValidation(req.Member, webhook.Installation{Reason: webhook.ReasonFailed, Message: plain.Text(err.Error(), calls.MaxMessage)})
		return reconcile.Done(), err
	}
	v.setValidation(req.Member, webhook.Installation{Reason: webhook.ReasonCurrent, Message: "the member calls the hub to validate objects"})
	if changed {
		req.Events.Normal(webhook.EventConfigured, "Plimsoll updated the webhook configuration")
	}
	return reconcile.Done(), nil
}

// bring patches the configuration if it differs.
func (v validationKeeper) bring(ctx context.Context, req reconcile.Request[*admissionregistrationv1.ValidatingWebhookConfiguration]) (changed bool, err error) {
	var desired []admissionregistrationv1.ValidatingWebhook
	var tokens []string
	for _, kind := range v.reviewed() {
		token, err := v.options.Tokens.For(forKind(kind)).Current(req.Member)
		if err != nil {
			return false, err
		}
		desired, tokens = append(desired, Validation(kind, v.options.Wanted(), req.Member, token)), append(tokens, token)
	}
	if equality.Semantic.DeepEqual(req.Object.Webhooks, desired) {
		return false, nil
	}
	before := req.Object.DeepCopy()
	req.Object.Webhooks = desired
	if err := req.Client.Patch(ctx, req.Object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, calls.WithoutToken(fmt.Errorf("member %s: webhook configuration %s: patch: %w", req.Member, req.Object.Name, err), tokens...)
	}
	return true, nil
}
