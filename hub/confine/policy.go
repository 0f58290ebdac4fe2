package confine

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// PodSecurityLevel is the Pod Security Standard that the namespace of the hub's account enforces.
const PodSecurityLevel = "restricted"

// PodSecurityLabels are the labels of the namespace of the hub's account.
func PodSecurityLabels() map[string]string {
	return map[string]string{"pod-security.kubernetes.io/enforce": PodSecurityLevel}
}

// NamespaceLabels are those with pods of the namespace placed as well: only where the webhook is called for the namespace of the
// hub's account can the hub see, by a dry run, that the member's API server reaches it. No prefixes: [policy.DefaultPrefix].
func NamespaceLabels(prefixes ...string) map[string]string {
	labels := PodSecurityLabels()
	for _, prefix := range (Account{Prefixes: prefixes}).withDefaults().Prefixes {
		labels[prefix+"/enabled"] = "true"
	}
	return labels
}

// Account is whom the policies bind, and what is its own.
type Account struct {
	// Namespace and Name of the service account in the member.
	Namespace, Name string
	// Webhook is the name of its webhook configurations.
	Webhook string
	// Prefixes stand before the slash of its labels and annotations; empty: [policy.DefaultPrefix].
	Prefixes []string
	// ProbeNamespace is where it creates probe pods; "": Namespace.
	ProbeNamespace string
	// Namespaces are those about which its webhooks may be called, for a member that is registered for them alone; empty: any.
	Namespaces []string
	// HubNamespaces are those of the hub and of its registrations, where the member is the hub's own cluster; empty: it is another one.
	HubNamespaces []string
	// RegistrationNamespace is where the hub renews tokens when the member is the hub cluster itself; "": Namespace.
	RegistrationNamespace string
	// Resources are kinds of modules that are known here, with what their objects consist of.
	Resources []module.Resource
	// Kinds are those of other modules about which members ask the hub, and whose definition it keeps.
	Kinds []schema.GroupResource
	// Writes are resources that reconcilers of other modules write, as a whole; see [Unwritable].
	Writes []schema.GroupResource
	// TokenLife is how long a token may live that it asks for itself; zero: [DefaultTokenLife].
	TokenLife time.Duration
	// URL is where members reach the hub's webhooks; nil: any host for the first URL that is written, and that host from then on.
	URL *url.URL
}

// DefaultTokenLife is how long a token of the hub lives where nothing else is asked for.
const DefaultTokenLife = 30 * 24 * time.Hour

func (a Account) withDefaults() Account {
	a.TokenLife = cmp.Or(a.TokenLife, DefaultTokenLife)
	if len(a.Prefixes) == 0 {
		a.Prefixes = []string{policy.DefaultPrefix}
	}
	if a.ProbeNamespace == "" {
		a.ProbeNamespace = a.Namespace
	}
	if a.RegistrationNamespace == "" {
		a.RegistrationNamespace = a.Namespace
	}
	return a
}

// user is the account's name in requests.
func (a Account) user() string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }

// A Policy is a ValidatingAdmissionPolicy and its binding, which have one name.
type Policy struct {
	Policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	Binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// Policies are all that bind the account. Their names begin with the account's.
func Policies(account Account) []Policy {
	a := account.withDefaults()
	rules := []rule{kinds(a), pods(a), evictions(), events(), webhooks(a), definitions(a)}
	for i := range a.Resources {
		if len(a.Resources[i].Parts) > 0 {
			rules = append(rules, parts(a, &a.Resources[i]))
		}
		if runsAsAccounts(&a.Resources[i]) {
			rules = append(rules, foreignAccounts(&a.Resources[i]))
		}
		if scalesWorkloads(&a.Resources[i]) {
			rules = append(rules, foreignWorkloads(&a.Resources[i]))
		}
	}
	rules = append(rules, identity(a))
	all := make([]Policy, 0, len(rules))
	for i := range rules {
		all = append(all, rules[i].policy(a))
	}
	return all
}

// rule is what one policy is made of.
type rule struct {
	suffix      string // of its name
	resources   []admissionregistrationv1.RuleWithOperations
	conditions  []admissionregistrationv1.MatchCondition // beside the one for the user
	variables   []admissionregistrationv1.Variable
	validations []admissionregistrationv1.Validation
	// ofEach is the kind whose objects of the request's namespace the validations are about, one by one, as params; nil: none. For each of
	// them an API server copies the request's object several times.
	ofEach *admissionregistrationv1.ParamKind
	// without is a label that they do not have; "": any.
	without string
}

func (r *rule) policy(a Account) Policy {
	meta := metav1.ObjectMeta{Name: a.Name + "-" + r.suffix}
	resources := make([]admissionregistrationv1.NamedRuleWithOperations, 0, len(r.resources))
	for _, one := range r.resources {
		one.Scope = ptr.To(admissionregistrationv1.AllScopes)
		resources = append(resources, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: one})
	}
	var each *admissionregistrationv1.ParamRef
	if r.ofEach != nil {
		each = &admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: ptr.To(admissionregistrationv1.AllowAction)}
		if r.without != "" {
			each.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: r.without, Operator: metav1.LabelSelectorOpDoesNotExist}}
		}
	}
	return Policy{
		Policy: &admissionregistrationv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				ParamKind:     r.ofEach,
				FailurePolicy: ptr.To(admissionregistrationv1.Fail),
				MatchConstraints: &admissionregistrationv1.MatchResources{
					MatchPolicy: ptr.To(admissionregistrationv1.Equivalent), ResourceRules: resources,
					NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				},
				MatchConditions: append([]admissionregistrationv1.MatchCondition{{
					Name: "by-the-hub", Expression: "request.userInfo.username == " + quote(a.user()),
				}}, r.conditions...),
				Variables: r.variables, Validations: r.validations,
			},
		},
		Binding: &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: meta.Name, ParamRef: each, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
	}
}

// on is a rule about resources of one group, in all versions.
func on(group string, operations string, resources ...string) admissionregistrationv1.RuleWithOperations {
	made := admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources,
	}}
	for _, operation := range strings.Fields(operations) {
		made.Operations = append(made.Operations, admissionregistrationv1.OperationType(operation))
	}
	return made
}

// deny is a validation; the message says what is allowed.
func deny(unless, message string) admissionregistrationv1.Validation {
	return admissionregistrationv1.Validation{Expression: unless, Message: "the hub's account " + message, Reason: ptr.To(metav1.StatusReasonForbidden)}
}

func variable(name, expression string) admissionregistrationv1.Variable {
	return admissionregistrationv1.Variable{Name: name, Expression: expression}
}

// quote writes a CEL string. What it is given are names and URLs, in which nothing has to be escaped but what Go escapes alike.
func quote(text string) string { return fmt.Sprintf("%q", text) }

// list writes a CEL list of strings.
func list(texts ...string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// systemNamespaces are Kubernetes' own: the hub has nothing to do there.
func systemNamespaces() string {
	return list(metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease)
}

// apart is true for a namespace where what the account writes reaches neither Kubernetes' own parts nor the hub's keys: pods can have any
// Secret of their namespace in their environment.
func (a Account) apart(namespace string) string {
	expression := "!(" + namespace + " in " + systemNamespaces() + ") && " + namespace + " != " + quote(a.Namespace)
	for _, of := range a.HubNamespaces {
		if of != a.Namespace {
			expression += " && " + namespace + " != " + quote(of)
		}
	}
	return expression
}

// ownNamespaces are in words those beside Kubernetes' own that are not apart.
func (a Account) ownNamespaces() string {
	if len(a.HubNamespaces) > 0 {
		return "those of the hub"
	}
	return "its own"
}
