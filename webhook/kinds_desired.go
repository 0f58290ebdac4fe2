package webhook

import (
	"net/url"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1beta1"
)

const (
	defaultsName   = "defaults.webapps.plimsoll.dev"
	validationName = "validation.webapps.plimsoll.dev"
)

// WebAppDefaults is the webhook of a member's configuration that completes WebApps, every field set as the API server would
// default it. Without the hub they are stored as they are: nothing in it is needed. Each version is sent as it is: one that is
// converted there and back before its own schema is asked may have lost what is wrong with it.
func WebAppDefaults(wanted Wanted, member, token string) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    defaultsName,
		ClientConfig:            webAppClient(wanted, member, token, "default"),
		Rules:                   webAppRules(webAppVersions(), "webapps"),
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Exact),
		NamespaceSelector:       webAppNamespaces(wanted),
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](calledTimeout),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
	}
}

// WebAppValidation is the configuration by which a member asks whether a WebApp may be stored. Without the hub the rules in the
// CRD stand alone: the hub is never what keeps a cluster from being used.
func WebAppValidation(wanted Wanted, member, token string) []admissionregistrationv1.ValidatingWebhook {
	return []admissionregistrationv1.ValidatingWebhook{{
		Name:                    validationName,
		ClientConfig:            webAppClient(wanted, member, token, "validate"),
		Rules:                   webAppRules([]string{v1.GroupVersion.Version}, "webapps", "webapps/scale"),
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       webAppNamespaces(wanted),
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](calledTimeout),
		AdmissionReviewVersions: []string{"v1"},
	}}
}

func webAppClient(wanted Wanted, member, token, call string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		URL: ptr.To(memberURL(wanted.BaseURL, member, token).JoinPath("webapps", call).String()), CABundle: wanted.Bundle,
	}
}

// webAppVersions are all that are served.
func webAppVersions() []string {
	return []string{v1.GroupVersion.Version, v1beta1.GroupVersion.Version, v1alpha1.GroupVersion.Version}
}

func webAppRules(versions []string, resources ...string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{v1.GroupVersion.Group}, APIVersions: versions, Resources: resources,
			Scope: ptr.To(admissionregistrationv1.NamespacedScope),
		},
	}}
}

func webAppNamespaces(wanted Wanted) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	if wanted.Only != nil {
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: wanted.Only}}
	}
	return selector
}

// ConvertURL is where the API server of a member has WebApps converted.
func ConvertURL(base *url.URL, member, token string) string {
	return memberURL(base, member, token).JoinPath("convert").String()
}

func memberURL(base *url.URL, member, token string) *url.URL {
	return base.JoinPath("webhook", "v1", "members", member, token)
}
