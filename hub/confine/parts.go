package confine

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/reconcile/module"
)

// accounts are the parts that pods of others run as.
var accounts = schema.GroupResource{Resource: "serviceaccounts"}

// owner is true for a reference to an object of a kind that has parts: kinds may have parts of one resource.
func (a Account) owner(r string) string {
	var kinds []string
	for i := range a.Resources {
		if of := &a.Resources[i]; len(of.Parts) > 0 {
			kinds = append(kinds, r+".kind == "+quote(of.Kind)+" && "+r+".apiVersion.startsWith("+quote(of.Group+"/")+")")
		}
	}
	if len(kinds) == 1 {
		return kinds[0]
	}
	return "(" + strings.Join(kinds, " || ") + ")"
}

// parts lets the account write what an object of a module's kind controls that has the same name, and has it run nothing that
// reaches a node or another account. Whether that object is there a policy cannot see; Kubernetes deletes the parts of one that is not.
func parts(a Account, of *module.Resource) rule {
	resources := make([]admissionregistrationv1.RuleWithOperations, 0, len(of.Parts))
	for _, part := range of.Parts {
		resources = append(resources, on(part.Group, "CREATE UPDATE DELETE", part.Resource))
	}
	controlled := func(object string) string {
		return object + `.metadata.?ownerReferences.orValue([]).exists(r, r.?controller.orValue(false) && ` + a.owner("r") + ` && r.name == ` + object + `.metadata.name)`
	}
	deployment := func(expression string) string {
		return `request.resource.resource != "deployments" || request.operation == "DELETE" || (` + expression + ")"
	}
	const spec = "object.spec.template.spec"
	made := rule{
		suffix:    of.Plural,
		resources: resources,
		validations: []admissionregistrationv1.Validation{
			deny("(object == null || "+controlled("object")+") && (oldObject == null || "+controlled("oldObject")+")",
				"may only write what a "+of.Kind+" of the same name controls"),
			deny("!(request.namespace in "+systemNamespaces()+") && request.namespace != "+quote(a.Namespace),
				"may not write parts of "+of.Title+" in Kubernetes' own namespaces, nor in its own"),
		},
	}
	if slices.Contains(of.Parts, schema.GroupResource{Group: "apps", Resource: "deployments"}) {
		made.validations = append(made.validations,
			deny(deployment(harmless(spec)+" && !has("+spec+".volumes)"), "may only create Deployments that reach nothing of their node"))
		if slices.Contains(of.Parts, accounts) {
			made.validations = append(made.validations,
				deny(deployment(spec+`.?serviceAccountName.orValue("") == object.metadata.name`), "may only have pods run as the "+of.Kind+"'s own account"))
		} else {
			made.validations = append(made.validations,
				deny(deployment(spec+`.?serviceAccountName.orValue("default") == "default"`), "may only have pods run as the account that any pod has"))
		}
	}
	if slices.Contains(of.Parts, schema.GroupResource{Resource: "services"}) {
		made.validations = append(made.validations,
			deny(`request.resource.resource != "services" || request.operation == "DELETE" || (!has(object.spec.externalIPs) && object.spec.?type.orValue("ClusterIP") != "ExternalName")`,
				"may not create Services that take addresses over"))
	}
	return made
}
