package confine

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/reconcile/module"
)

// keptKinds are those about which the hub may be asked, and whose definition it keeps.
func (a Account) keptKinds() (kinds []schema.GroupResource) {
	for i := range a.Resources {
		if a.Resources[i].Definition != nil {
			kinds = append(kinds, schema.GroupResource{Group: a.Resources[i].Group, Resource: a.Resources[i].Plural})
		}
	}
	return append(kinds, a.Kinds...)
}

// askedAbout says in words about what members ask, beside pods.
func (a Account) askedAbout() string {
	var names []string
	for i := range a.Resources {
		names = append(names, a.Resources[i].Title)
	}
	for _, kind := range a.Kinds {
		names = append(names, kind.String())
	}
	if len(names) == 0 {
		return ""
	}
	return ", and about " + strings.Join(names, ", ")
}

// callPath is in every URL of the hub's webhooks.
const callPath = "/webhook/v1/members/"

// allowedURLs is true when the URLs that are written are the hub's: below its URL, when that is known, else at the host that was
// written before. To take all of them away is refused, as anything could be written after it.
func (a Account) allowedURLs(before, after string) string {
	if a.URL != nil {
		base := strings.TrimSuffix(a.URL.String(), "/") + callPath
		return after + ".all(u, u.startsWith(" + quote(base) + "))"
	}
	return "size(" + before + ") == 0 || (size(" + after + ") > 0 && " + after + ".all(u, isURL(u) && " +
		before + ".exists(o, url(o).getScheme() == url(u).getScheme() && url(o).getHost() == url(u).getHost())))"
}

// sameOwners is true when nobody's finalizer or owner changed.
const sameOwners = "object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences && " +
	"object.metadata.?finalizers == oldObject.metadata.?finalizers"

// webhookTimeout is how many seconds an API server waits for the hub, as the hub writes it. Webhooks that change objects are called one
// after the other, so without a limit of both the time and their number the hub could hold pods up for minutes.
const webhookTimeout = 2

// mostWebhooks is how many a configuration may have: one for pods and one for each kind, and one more for a later version of the hub.
func (a Account) mostWebhooks() int { return 1 + len(a.keptKinds()) + 1 }

// webhooks lets the account keep its configurations current: calls of the hub, about pods that are created and its kinds, which
// never hold a cluster up.
func webhooks(a Account) rule {
	urls := func(of string) string {
		return of + ".?webhooks.orValue([]).filter(w, has(w.clientConfig.url)).map(w, w.clientConfig.url)"
	}
	enabled := make([]string, 0, len(a.Prefixes))
	for _, prefix := range a.Prefixes {
		enabled = append(enabled, prefix+"/enabled")
	}
	asked := `(r.apiGroups == [""] && r.resources == ["pods"] && r.operations == ["CREATE"])`
	for _, kind := range a.keptKinds() {
		asked += fmt.Sprintf(` || (r.apiGroups == [%q] && r.resources.all(x, x in [%q, %q]))`, kind.Group, kind.Resource, kind.Resource+"/scale")
	}
	each := func(expression string) string { return "object.?webhooks.orValue([]).all(w, " + expression + ")" }
	made := rule{
		suffix: "webhooks",
		resources: []admissionregistrationv1.RuleWithOperations{
			on("admissionregistration.k8s.io", update, "mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
		},
		variables: []admissionregistrationv1.Variable{variable("urls", urls("object")), variable("oldURLs", urls("oldObject"))},
		validations: []admissionregistrationv1.Validation{
			deny(each("has(w.clientConfig.url) && !has(w.clientConfig.service)")+" && ("+a.allowedURLs("variables.oldURLs", "variables.urls")+")",
				"may only have its own URL called"),
			deny(each(`w.?rules.orValue([]).all(r, `+asked+`)`), "may only be asked about pods that are created"+a.askedAbout()),
			deny(each(`!w.?rules.orValue([]).exists(r, "" in r.apiGroups) || (`+
				`w.?namespaceSelector.?matchExpressions.orValue([]).exists(e, e.operator == "In" && e.?values.orValue([]) == ["true"] && e.key in `+list(enabled...)+`) && `+
				`w.?namespaceSelector.?matchExpressions.orValue([]).exists(e, e.operator == "NotIn" && e.key == "kubernetes.io/metadata.name" && "kube-system" in e.?values.orValue([])))`),
				"may only be asked about pods of enabled namespaces, and never of kube-system"),
			deny(each(fmt.Sprintf(`w.?failurePolicy.orValue("") == "Ignore" && w.?timeoutSeconds.orValue(10) <= %d`, webhookTimeout)),
				fmt.Sprintf("may not hold a cluster up: failurePolicy must be Ignore, and timeoutSeconds at most %d", webhookTimeout)),
			deny(fmt.Sprintf("size(object.?webhooks.orValue([])) <= %d", a.mostWebhooks()),
				fmt.Sprintf("may not hold a cluster up: a configuration may have at most %d webhooks", a.mostWebhooks())),
			deny(sameOwners, "may not change owners or finalizers of its webhook configurations"),
		},
	}
	if len(a.Namespaces) > 0 {
		made.validations = append(made.validations, deny(each(`w.?namespaceSelector.?matchExpressions.orValue([]).exists(e, e.operator == "In" && `+
			`e.key == "kubernetes.io/metadata.name" && e.?values.orValue([]).all(v, v in `+list(a.Namespaces...)+"))"),
			"may only be asked about the namespaces "+strings.Join(a.Namespaces, ", ")))
	}
	return made
}

// definitions lets the account keep the schemas and the converters of its kinds current.
func definitions(a Account) rule {
	url := func(of string) string {
		return of + ".spec.?conversion.?webhook.?clientConfig.?url.hasValue() ? [" + of + ".spec.conversion.webhook.clientConfig.url] : []"
	}
	made := rule{
		suffix:    "definitions",
		resources: []admissionregistrationv1.RuleWithOperations{on("apiextensions.k8s.io", update, "customresourcedefinitions")},
		variables: []admissionregistrationv1.Variable{variable("urls", url("object")), variable("oldURLs", url("oldObject"))},
		validations: []admissionregistrationv1.Validation{
			deny("!object.spec.?conversion.?webhook.?clientConfig.?service.hasValue() && ("+a.allowedURLs("variables.oldURLs", "variables.urls")+")",
				"may only have its own URL called"),
			deny("object.spec.group == oldObject.spec.group && object.spec.names == oldObject.spec.names && object.spec.scope == oldObject.spec.scope",
				"may not change what is defined"),
			deny(sameOwners, "may not change owners or finalizers of the definition"),
		},
	}
	for i := range a.Resources {
		if of := &a.Resources[i]; of.Definition != nil && len(of.Parts) > 0 {
			made.validations = append(made.validations, ownersServed(of))
		}
	}
	return made
}

// ownersServed keeps the version served that owner references of a kind's parts name; see [refersTo].
func ownersServed(of *module.Resource) admissionregistrationv1.Validation {
	version := of.Versions[0]
	return deny("object.metadata.name != "+quote(of.Definition.Name())+" || object.spec.versions.exists(v, v.name == "+quote(version)+" && v.served)",
		"may not stop serving version "+version+" of "+of.Title+", which owner references name")
}
