package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

// ControllerName is the name of the installer's controller.
const ControllerName = "webhook-configuration"

// EventConfigured is the reason of an Event about a webhook configuration in a member.
const EventConfigured = "WebhookConfigured" // The hub updated its webhook configuration.

// Reasons of an [Installation].
const (
	// ReasonMissing: the member has no configuration of that name; a person has to make it.
	ReasonMissing = "Missing"
	// ReasonCurrent: the configuration is as it should be.
	ReasonCurrent = "Current"
	// ReasonFailed: it should be changed, and could not be.
	ReasonFailed = "Failed"
	// ReasonUnreachable: the configuration is as it should be, and the member's API server gets no answer from the hub.
	ReasonUnreachable = "Unreachable"
	// ReasonUnproven: the configuration is as it should be, and nobody knows whether the member's API server reaches the hub.
	ReasonUnproven = "Unproven"
)

// Installation reports how the webhook configuration of a member is.
type Installation struct {
	// Reason is one of ReasonMissing, ReasonCurrent, ReasonFailed, ReasonUnreachable and ReasonUnproven; Message a sentence without any secret value.
	Reason, Message string
}

// InstallerOptions say what an [Installer] keeps in the members.
type InstallerOptions struct {
	// Name of the MutatingWebhookConfiguration; "" is [ConfigurationName].
	Name string
	// Tokens are the members' capability tokens.
	Tokens *Tokens
	// Further makes the webhooks of the configuration that are not about pods, and returns the tokens that are in them; nil: there are none.
	Further func(wanted Wanted, member string) (webhooks []admissionregistrationv1.MutatingWebhook, tokens []string, err error)
	// Wanted reports what configurations follow from now; it is asked at every reconcile, as certificates change.
	Wanted func() Wanted
	// Namespaces are those that a member is registered for; nil: the whole cluster. Nil as a function: always that.
	Namespaces func(member string) []string
	// CheckNamespace is where the hub may create pods in a member, which it does as a dry run to see whether the API server
	// reaches the webhook. Nil: nothing is checked, and what is configured is taken to work.
	CheckNamespace func(member string) string
	// CheckImage is the image that such a pod names. Nothing is run.
	CheckImage string
	// UndecidedAt is when pods of a member were last seen that came without a decision, which is checked soon; nil: nobody knows.
	UndecidedAt func(member string) time.Time
}

// Installer keeps the webhook configuration of every member current. It never makes one: what decides about all pods of a
// cluster is given to the hub by a person, who may take it away again (`plimsoll register` makes an empty one).
type Installer struct {
	options InstallerOptions

	checks checks

	mu            sync.Mutex
	installations map[string]Installation
}

var (
	_ reconcile.Reconciler[*admissionregistrationv1.MutatingWebhookConfiguration] = (*Installer)(nil)
	_ reconcile.Forgetter                                                         = (*Installer)(nil)
)

// Checked returns the options with their defaults, or what is wrong with them.
func (o InstallerOptions) Checked() (InstallerOptions, error) {
	if o.Name == "" {
		o.Name = ConfigurationName
	}
	if o.Tokens == nil || o.Wanted == nil {
		return o, errors.New("webhook installer: Tokens and Wanted must be set")
	}
	if err := o.Wanted().validate(); err != nil {
		return o, err
	}
	if o.Namespaces == nil {
		o.Namespaces = func(string) []string { return nil }
	}
	if o.UndecidedAt == nil {
		o.UndecidedAt = func(string) time.Time { return time.Time{} }
	}
	return o, nil
}

// NewInstaller checks what can be checked before the first member is there.
func NewInstaller(options InstallerOptions) (*Installer, error) {
	options, err := options.Checked()
	if err != nil {
		return nil, err
	}
	return &Installer{options: options, installations: map[string]Installation{}}, nil
}

// Kind declares what the installer caches of a member: the one configuration, whole.
func (i *Installer) Kind() clusters.Kind {
	return clusters.Kind{
		Object: &admissionregistrationv1.MutatingWebhookConfiguration{},
		Fields: fields.OneTermEqualSelector("metadata.name", i.options.Name),
		// Tenants of one cluster would otherwise overwrite each other's.
		PerTenant: true,
	}
}

// Access is what the installer needs in a member.
func (i *Installer) Access() []clusters.Access {
	return []clusters.Access{{
		Group: admissionregistrationv1.GroupName, Resource: "mutatingwebhookconfigurations", Name: i.options.Name,
		Verbs: []string{"get", "list", "watch", "patch"}, ClusterScoped: true, PerTenant: true,
		For: "placing new pods as they are created",
	}}
}

// name is that of a member's configuration.
func (i *Installer) name(member string) string {
	if i.options.Namespaces(member) != nil {
		return clusters.TenantName(i.options.Name, member)
	}
	return i.options.Name
}

// Installation reports how the configuration of a member was when last seen.
func (i *Installer) Installation(member string) Installation {
	name := i.name(member)
	i.mu.Lock()
	defer i.mu.Unlock()
	if known, ok := i.installations[member]; ok {
		return known
	}
	return Installation{Reason: ReasonMissing, Message: fmt.Sprintf(
		"the member has no MutatingWebhookConfiguration %s: create it with `plimsoll register`; until then the hub moves pods after their creation", name)}
}

func (i *Installer) set(member string, is Installation) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.installations[member] = is
}

// Forget notes that a member has no configuration any more, or is gone itself.
func (i *Installer) Forget(_ context.Context, member string, _ types.NamespacedName) {
	i.checks.forget(member)
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.installations, member)
}

// Reached says of the members that were checked whether their API servers reach the webhook.
func (i *Installer) Reached() map[string]bool { return i.checks.all() }

// Reconcile makes the configuration what it should be, and writes nothing when it is.
func (i *Installer) Reconcile(ctx context.Context, req reconcile.Request[*admissionregistrationv1.MutatingWebhookConfiguration]) (reconcile.Result, error) {
	if req.Object.Name != i.name(req.Member) || !req.Object.DeletionTimestamp.IsZero() {
		return reconcile.Done(), nil
	}
	changed, err := i.bring(ctx, req)
	if apierrors.IsConflict(err) {
		return reconcile.Requeue("the webhook configuration changed meanwhile"), nil
	}
	if err != nil {
		i.set(req.Member, Installation{Reason: ReasonFailed, Message: plain.Text(err.Error(), calls.MaxMessage)})
		return reconcile.Done(), err
	}
	wait := i.prove(ctx, req, changed)
	if changed && i.options.Namespaces(req.Member) == nil { // it would be in a namespace that is no tenant's
		req.Events.Normal(EventConfigured, "Plimsoll updated the webhook configuration")
	}
	if wait > 0 {
		return reconcile.RequeueAfter(wait, "check whether the API server reaches the webhook"), nil
	}
	return reconcile.Done(), nil
}

// prove checks whether the member's API server reaches the webhook, when that is due, and says how the configuration is. wait is
// when to look again; 0: it is not checked.
func (i *Installer) prove(ctx context.Context, req reconcile.Request[*admissionregistrationv1.MutatingWebhookConfiguration], changed bool) (wait time.Duration) {
	current := Installation{Reason: ReasonCurrent, Message: "the webhook places new pods as they are created"}
	if i.options.CheckNamespace == nil {
		i.set(req.Member, current)
		return 0
	}
	is, now := i.checks.of(req.Member), time.Now()
	if changed {
		is.at = time.Time{}
	}
	if !now.Before(is.next(i.options.UndecidedAt(req.Member))) {
		wanted := i.options.Wanted()
		wanted.Only = i.options.Namespaces(req.Member)
		outcome, why := i.check(ctx, req.Client, req.Member, wanted)
		is = is.checked(outcome, why, time.Now())
		i.checks.set(req.Member, is)
	}
	switch is.is {
	case notReached:
		current = Installation{Reason: ReasonUnreachable, Message: is.why}
	case notChecked:
		current = Installation{Reason: ReasonUnproven, Message: is.why}
	}
	i.set(req.Member, current)
	return max(time.Until(is.next(i.options.UndecidedAt(req.Member))), time.Second)
}

// bring patches the configuration if it differs.
func (i *Installer) bring(ctx context.Context, req reconcile.Request[*admissionregistrationv1.MutatingWebhookConfiguration]) (changed bool, err error) {
	wanted := i.options.Wanted()
	wanted.Only = i.options.Namespaces(req.Member)
	if err := wanted.validate(); err != nil {
		return false, err
	}
	podToken, err := i.options.Tokens.Current(req.Member)
	if err != nil {
		return false, err
	}
	desired, tokens := Desired(wanted, req.Member, podToken), []string{podToken}
	if i.options.Further != nil {
		webhooks, theirs, err := i.options.Further(wanted, req.Member)
		if err != nil {
			return false, err
		}
		desired, tokens = append(desired, webhooks...), append(tokens, theirs...)
	}
	if equality.Semantic.DeepEqual(req.Object.Webhooks, desired) {
		return false, nil
	}
	before := req.Object.DeepCopy()
	req.Object.Webhooks = desired
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := req.Client.Patch(ctx, req.Object, patch); err != nil {
		return false, calls.WithoutToken(fmt.Errorf("member %s: webhook configuration %s: patch: %w", req.Member, req.Object.Name, err), tokens...)
	}
	return true, nil
}
