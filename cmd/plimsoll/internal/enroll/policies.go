package enroll

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-dev/plimsoll/hub/confine"
)

// resources of the policies.
const (
	policyResource        = "validatingadmissionpolicies"
	policyBindingResource = "validatingadmissionpolicybindings"
)

// policies are those that bind the hub's account, and their bindings.
func (r Registration) policies() (makers []func() (object, error)) {
	own := r.names()
	account := confine.Account{
		Namespace: r.MemberNamespace, Name: own.account, Webhook: own.webhook, Prefixes: r.AnnotationPrefixes, RegistrationNamespace: r.Namespace, HubNamespaces: r.hubNamespaces(),
		Writes: r.written(), Kinds: r.kept(), TokenLife: r.TokenDuration, Namespaces: r.Namespaces,
	}
	for i := range r.Kinds {
		account.Resources = append(account.Resources, r.Kinds[i].Resource)
	}
	if len(r.Namespaces) > 0 {
		account.ProbeNamespace = slices.Min(r.Namespaces)
	}
	if r.WebhookURL != "" {
		account.URL, _ = url.Parse(r.WebhookURL) // Validate has parsed it
	}
	for _, made := range confine.Policies(account) {
		labels := meta("", "").Labels
		made.Policy.Labels, made.Binding.Labels = labels, maps.Clone(labels)
		makers = append(makers,
			func() (object, error) { return of(policyResource, made.Policy) },
			func() (object, error) { return of(policyBindingResource, made.Binding) })
	}
	return makers
}

// validatePolicies says what is wrong with what the policies follow from.
func (r Registration) validatePolicies() error {
	for _, prefix := range r.AnnotationPrefixes {
		if problems := validation.IsDNS1123Subdomain(prefix); len(problems) > 0 {
			return fmt.Errorf("annotation prefix %q: %s", prefix, problems[0])
		}
	}
	if r.WebhookURL == "" {
		return nil
	}
	at, err := url.Parse(r.WebhookURL)
	if err == nil && (at.Scheme != "https" || at.Host == "" || at.RawQuery != "" || at.Fragment != "") {
		err = errors.New("must be https://HOST[:PORT][/PATH]")
	}
	if err != nil {
		return fmt.Errorf("webhook URL %q: %w", r.WebhookURL, err)
	}
	return nil
}

// older recognises an API server that does not know ValidatingAdmissionPolicies, which came with Kubernetes 1.30.
func older(o object, err error) bool {
	return apierrors.IsNotFound(err) && (o.resource.Resource == policyResource || o.resource.Resource == policyBindingResource)
}

// Notes of a [Change].
const (
	tooOld      = "the API server is older than Kubernetes 1.30 and has no ValidatingAdmissionPolicies: only RBAC restricts the hub"
	asItIs      = "it exists already and is used as it is"
	outdated    = asItIs + "; it differs from that of this version with these flags, which have no effect on it"
	notEnforced = asItIs + "; its label pod-security.kubernetes.io/enforce is not " + confine.PodSecurityLevel
)

// kept is the note about an object that somebody else made.
func kept(o *unstructured.Unstructured) string {
	for key, value := range confine.PodSecurityLabels() {
		if o.GetKind() == "Namespace" && o.GetLabels()[key] != value {
			return notEnforced
		}
	}
	return asItIs
}
