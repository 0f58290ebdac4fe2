package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

const (
	// ConfigurationName is the name of the MutatingWebhookConfiguration in members, unless the hub's configuration says
	// otherwise.
	ConfigurationName = "plimsoll"

	// webhookName is the name of the one webhook in it; Kubernetes wants a name with dots.
	webhookName = "pods.plimsoll.dev"
)

// controlled is true for pods that a ReplicaSet, a StatefulSet or one of the owners makes: no other can have a slot, so no
// other needs to wait for us.
func controlled(owners []schema.GroupKind) string {
	made := `o.apiVersion.startsWith("apps/") && (o.kind == "ReplicaSet" || o.kind == "StatefulSet")`
	if len(owners) > 0 {
		made = "(" + made + ")"
	}
	for _, owner := range owners {
		made += fmt.Sprintf(` || (o.apiVersion.startsWith(%q) && o.kind == %q)`, owner.Group+"/", owner.Kind)
	}
	if len(owners) > 0 {
		made = "(" + made + ")"
	}
	return `has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, ` +
		`has(o.controller) && o.controller && ` + made + `)`
}

// Wanted is what a member's webhook configuration follows from, beside its token.
type Wanted struct {
	// BaseURL is where members reach the hub; see [ParseBaseURL].
	BaseURL *url.URL
	// Bundle is what the member is to trust, in PEM; empty: what its system trusts.
	Bundle []byte
	// EnabledLabel is the label that a namespace needs, with the value "true".
	EnabledLabel string
	// Namespaces restricts the namespaces further; nil: no further.
	Namespaces *metav1.LabelSelector
	// Owners are the kinds of controllers whose pods are placed beside those of ReplicaSets and StatefulSets.
	Owners []schema.GroupKind
	// Only are the names of the namespaces that the member is registered for; nil: any.
	Only []string
}

// prefix is that of the hub's labels.
func (w Wanted) prefix() string {
	prefix, _, _ := strings.Cut(w.EnabledLabel, "/")
	return prefix
}

// Desired returns the webhook of a member's configuration that places pods, every field set as the API server would default it, so that
// what is read back compares equal.
func Desired(wanted Wanted, member, podToken string) []admissionregistrationv1.MutatingWebhook {
	return []admissionregistrationv1.MutatingWebhook{{
		Name: webhookName,
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL:      ptr.To(callURL(wanted.BaseURL, member, podToken)),
			CABundle: wanted.Bundle,
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{
				APIGroups:   []string{corev1.GroupName},
				APIVersions: []string{"v1"},
				Resources:   []string{"pods"},
				Scope:       ptr.To(admissionregistrationv1.NamespacedScope),
			},
		}},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       namespaceSelector(wanted),
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
		TimeoutSeconds:          ptr.To[int32](calls.Timeout),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "controlled-by-replicaset-or-statefulset", Expression: controlled(wanted.Owners),
		}},
	}}
}

// namespaceSelector leaves kube-system alone whatever its labels are: a cluster must come up without us.
func namespaceSelector(wanted Wanted) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	if wanted.Namespaces != nil {
		selector = wanted.Namespaces.DeepCopy()
	}
	selector.MatchExpressions = append([]metav1.LabelSelectorRequirement{
		{Key: wanted.EnabledLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{"true"}},
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{metav1.NamespaceSystem}},
	}, selector.MatchExpressions...)
	if wanted.Only != nil {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: wanted.Only,
		})
	}
	return selector
}

// validate says what is missing.
func (w Wanted) validate() error {
	if w.BaseURL == nil {
		return errors.New("webhook configuration: no URL")
	}
	if w.EnabledLabel == "" {
		return errors.New("webhook configuration: no label of enabled namespaces")
	}
	if _, err := metav1.LabelSelectorAsSelector(w.Namespaces); err != nil {
		return fmt.Errorf("webhook configuration: namespace selector: %w", err)
	}
	return nil
}
