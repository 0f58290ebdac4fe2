package kinds

import (
	"net/url"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

// hookDomain ends the names of webhooks in a configuration: Kubernetes wants them with dots.
const hookDomain = ".plimsoll.dev"

// Completing makes the webhooks of a member's configuration that complete objects of kinds, and returns the tokens that are in them:
// [webhook.InstallerOptions.Further].
func Completing(kinds []module.Resource, tokens *webhook.Tokens) func(webhook.Wanted, string) ([]admissionregistrationv1.MutatingWebhook, []string, error) {
	return func(wanted webhook.Wanted, member string) (webhooks []admissionregistrationv1.MutatingWebhook, used []string, err error) {
		for i := range kinds {
			kind := &kinds[i]
			if kind.Complete == nil {
				continue
			}
			token, err := tokens.For(forKind(kind)).Current(member)
			if err != nil {
				return nil, nil, err
			}
			webhooks, used = append(webhooks, Defaults(kind, wanted, member, token)), append(used, token)
		}
		return webhooks, used, nil
	}
}

// Defaults is the webhook of a member's configuration that completes objects of a kind, every field set as the API server
// would default it. Without the hub they are stored as they are: nothing in it is needed. Each version is sent as it is: one
// that is converted there and back before its own schema is asked may have lost what is wrong with it.
func Defaults(kind *module.Resource, wanted webhook.Wanted, member, token string) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    "defaults." + kind.Plural + hookDomain,
		ClientConfig:            kindClient(kind, wanted, member, token, callDefault),
		Rules:                   kindRules(kind, kind.Versions, kind.Plural),
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Exact),
		NamespaceSelector:       kindNamespaces(wanted),
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](calls.Timeout),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
	}
}

// Validation is the webhook by which a member asks whether an object of a kind may be stored. Without the hub the rules in
// the kind's definition stand alone: the hub is never what keeps a cluster from being used.
func Validation(kind *module.Resource, wanted webhook.Wanted, member, token string) admissionregistrationv1.ValidatingWebhook {
	resources := []string{kind.Plural}
	for _, subresource := range kind.Subresources {
		resources = append(resources, kind.Plural+"/"+subresource)
	}
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    "validation." + kind.Plural + hookDomain,
		ClientConfig:            kindClient(kind, wanted, member, token, callValidate),
		Rules:                   kindRules(kind, kind.Versions[:1], resources...),
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       kindNamespaces(wanted),
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](calls.Timeout),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func kindClient(kind *module.Resource, wanted webhook.Wanted, member, token, call string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		URL: ptr.To(memberURL(wanted.BaseURL, member, token).JoinPath(kind.Plural, call).String()), CABundle: wanted.Bundle,
	}
}

func kindRules(kind *module.Resource, versions []string, resources ...string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{kind.Group}, APIVersions: versions, Resources: resources,
			Scope: ptr.To(admissionregistrationv1.NamespacedScope),
		},
	}}
}

func kindNamespaces(wanted webhook.Wanted) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	if wanted.Only != nil {
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: wanted.Only}}
	}
	return selector
}

// ConvertURL is where the API server of a member has objects converted.
func ConvertURL(base *url.URL, member, token string) string {
	return memberURL(base, member, token).JoinPath("convert").String()
}

func memberURL(base *url.URL, member, token string) *url.URL {
	return base.JoinPath("webhook", "v1", "members", member, token)
}
