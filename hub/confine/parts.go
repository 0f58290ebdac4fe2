package confine

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/reconcile/module"
)

// accounts are the parts that pods of others run as, and autoscalers those that scale workloads of others.
var (
	accounts    = schema.GroupResource{Resource: "serviceaccounts"}
	autoscalers = schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}
)

// refersTo is true for a reference to an object of a kind in the version that the hub writes. Of a version that is not served,
// Kubernetes' garbage collector never learns whether the object is there, so it would keep what refers to it for ever.
func refersTo(of *module.Resource, r string) string {
	return r + ".kind == " + quote(of.Kind) + " && " + r + ".apiVersion == " + quote(of.StoredAPIVersion())
}

// referred is true for a reference to an object of a kind in any version: a part that an older hub wrote can be changed and deleted.
func referred(of *module.Resource, r string) string {
	return r + ".kind == " + quote(of.Kind) + " && " + r + ".apiVersion.startsWith(" + quote(of.Group+"/") + ")"
}

// owner is true for a reference, as refers says, to an object of a kind that has parts: kinds may have parts of one resource.
func (a Account) owner(r string, refers func(of *module.Resource, r string) string) string {
	var kinds []string
	for i := range a.Resources {
		if of := &a.Resources[i]; len(of.Parts) > 0 {
			kinds = append(kinds, refers(of, r))
		}
	}
	if len(kinds) == 1 {
		return kinds[0]
	}
	return "(" + strings.Join(kinds, " || ") + ")"
}

// Paths in an object.
const (
	podTemplate = "object.spec.template"
	podSpec     = podTemplate + ".spec"
	owners      = ".metadata.?ownerReferences.orValue([])"
	finalizers  = ".metadata.?finalizers.orValue([])"
)

// parts lets the account write what an object of a module's kind controls that has the same name, and has it run nothing that
// reaches a node or another account. Whether that object is there a policy cannot see: Kubernetes deletes the parts of one that is
// not, with the pods below them. So a part may have nothing by which it, or its pods, would stay: no other owner, none of a version
// that may not be served, no finalizer, and no deletion that leaves what it controls.
func parts(a Account, of *module.Resource) rule {
	resources := make([]admissionregistrationv1.RuleWithOperations, 0, len(of.Parts))
	for _, part := range of.Parts {
		resources = append(resources, on(part.Group, "CREATE UPDATE DELETE", part.Resource))
	}
	controlled := func(object string, refers func(*module.Resource, string) string) string {
		return object + owners + `.exists(r, r.?controller.orValue(false) && ` + a.owner("r", refers) + ` && r.name == ` + object + `.metadata.name)`
	}
	made := rule{
		suffix:    of.Plural,
		resources: resources,
		variables: []admissionregistrationv1.Variable{ofKind(of)},
		validations: []admissionregistrationv1.Validation{
			deny("(object == null || "+controlled("object", refersTo)+") && (oldObject == null || "+controlled("oldObject", referred)+")",
				"may only write what a "+of.Kind+" of the same name controls"),
			deny("object == null || object"+owners+".all(r, r.?controller.orValue(false) || (oldObject != null && r in oldObject"+owners+"))",
				"may not add an owner that would keep what no "+of.Kind+" controls"),
			deny("object == null || object"+finalizers+".all(f, oldObject != null && f in oldObject"+finalizers+")",
				"may not add a finalizer that would keep what no "+of.Kind+" controls"),
			deny(`request.operation != "DELETE" || (request.?options.?propagationPolicy.orValue("") != "Orphan" && !request.?options.?orphanDependents.orValue(false))`,
				"may not delete parts of "+of.Title+" and leave what they control"),
			deny(a.apart("request.namespace"), "may not write parts of "+of.Title+" in Kubernetes' own namespaces, nor in "+a.ownNamespaces()),
		},
	}
	for _, part := range of.Parts {
		made.validations = append(made.validations, contents(of, part)...)
	}
	return made
}

// ofKind is a variable that is true when an object of the kind controls the request's object. Policies for several kinds may be about
// one resource, and each is about its own kind.
func ofKind(of *module.Resource) admissionregistrationv1.Variable {
	return variable("ofKind", "object"+owners+".exists(r, r.?controller.orValue(false) && "+refersTo(of, "r")+")")
}

// contents are what is in a part of the objects of a kind.
func contents(of *module.Resource, part schema.GroupResource) []admissionregistrationv1.Validation {
	about := func(expression, message string) admissionregistrationv1.Validation {
		return deny(`request.resource.resource != `+quote(part.Resource)+` || request.operation == "DELETE" || !variables.ofKind || (`+expression+")", message)
	}
	switch part {
	case schema.GroupResource{Group: "apps", Resource: "deployments"}:
		account, runsAs := `orValue("default") == "default"`, "the account that any pod has"
		if runsAsAccounts(of) {
			account, runsAs = `orValue("") == object.metadata.name`, "the "+of.Kind+"'s own account"
		}
		all := []admissionregistrationv1.Validation{
			about(harmless(podTemplate)+" && !has("+podSpec+".volumes)", "may only create Deployments that reach nothing of their node"),
			about("!has("+podSpec+".priorityClassName)", "may not have the pods of Deployments preempt others"),
			about("size("+podTemplate+".?metadata.?finalizers.orValue([])) == 0", "may not keep the pods of Deployments by finalizers"),
			about(podSpec+".?serviceAccountName."+account, "may only have pods run as "+runsAs),
		}
		if of.Label != "" {
			all = append(all, about("object.spec.selector == {"+quote("matchLabels")+": "+selected(of)+"}", "may only create Deployments of the pods of their own "+of.Kind))
		}
		return all
	case schema.GroupResource{Resource: "services"}:
		all := []admissionregistrationv1.Validation{
			about(`!has(object.spec.externalIPs) && object.spec.?type.orValue("ClusterIP") != "ExternalName"`, "may not create Services that take addresses over"),
		}
		if of.Label != "" {
			all = append(all, about("object.spec.?selector.orValue({}) == "+selected(of), "may only create Services for the pods of their own "+of.Kind))
		}
		return all
	case schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}:
		if of.Label != "" {
			return []admissionregistrationv1.Validation{
				about("object.spec.?selector.orValue({}) == {"+quote("matchLabels")+": "+selected(of)+"}", "may only create PodDisruptionBudgets for the pods of their own "+of.Kind),
			}
		}
	case autoscalers:
		if of.Workload.Kind != "" {
			target := "object.spec.scaleTargetRef"
			return []admissionregistrationv1.Validation{
				about(target+".kind == "+quote(of.Workload.Kind)+" && "+target+`.?apiVersion.orValue("").startsWith(`+quote(of.Workload.Group+"/")+") && "+target+".name == object.metadata.name",
					"may only have the "+of.Workload.Kind+" of the same "+of.Kind+" scaled"),
			}
		}
	}
	return nil
}

// selected are the labels by which the parts of an object of a kind select its pods.
func selected(of *module.Resource) string { return "{" + quote(of.Label) + ": object.metadata.name}" }

// runsAsAccounts reports whether the pods of a kind run as accounts of their own.
func runsAsAccounts(of *module.Resource) bool {
	return slices.Contains(of.Parts, accounts) && slices.Contains(of.Parts, schema.GroupResource{Group: "apps", Resource: "deployments"})
}

// scalesWorkloads reports whether autoscalers are among the parts of a kind.
func scalesWorkloads(of *module.Resource) bool {
	return slices.Contains(of.Parts, autoscalers) && of.Workload.Kind != ""
}

// controlsParam is true for a param that an object of the kind controls which has its name.
func controlsParam(of *module.Resource) string {
	return "params" + owners + ".exists(r, r.?controller.orValue(false) && " + refersTo(of, "r") + " && r.name == params.metadata.name)"
}

// foreignAccounts keeps a Deployment from having the name of an account that no object of the kind controls: its pods would run as that.
// Accounts with the kind's label are not looked at: a namespace with a thousand objects has a thousand of them, and a Deployment would take
// an API server seconds. The account that is bound cannot put the label on another's account.
func foreignAccounts(of *module.Resource) rule {
	return rule{
		suffix:    of.Plural + "-accounts",
		resources: []admissionregistrationv1.RuleWithOperations{on("apps", "CREATE UPDATE", "deployments")},
		ofEach:    &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ServiceAccount"},
		without:   of.Label,
		variables: []admissionregistrationv1.Variable{ofKind(of)},
		validations: []admissionregistrationv1.Validation{
			deny("!variables.ofKind || "+podSpec+`.?serviceAccountName.orValue("default") != params.metadata.name || `+controlsParam(of),
				"may not have pods run as an account that no "+of.Kind+" controls"),
		},
	}
}

// foreignWorkloads keeps an autoscaler from having the name of a workload that no object of the kind controls: it would scale that. Workloads
// with the kind's label are not looked at, for the reason that [foreignAccounts] has.
func foreignWorkloads(of *module.Resource) rule {
	return rule{
		suffix:    of.Plural + "-autoscalers",
		resources: []admissionregistrationv1.RuleWithOperations{on(autoscalers.Group, "CREATE UPDATE", autoscalers.Resource)},
		ofEach:    &admissionregistrationv1.ParamKind{APIVersion: of.Workload.GroupVersion().String(), Kind: of.Workload.Kind},
		without:   of.Label,
		variables: []admissionregistrationv1.Variable{ofKind(of)},
		validations: []admissionregistrationv1.Validation{
			deny("!variables.ofKind || object.spec.scaleTargetRef.name != params.metadata.name || "+controlsParam(of),
				"may not have a "+of.Workload.Kind+" scaled that no "+of.Kind+" controls"),
		},
	}
}
