package confine

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// own is a CEL expression that is true when a key is one of the account's labels or annotations.
func (a Account) own(key string) string {
	terms := make([]string, 0, len(a.Prefixes))
	for _, prefix := range a.Prefixes {
		terms = append(terms, key+".startsWith("+quote(prefix+"/")+")")
	}
	return "(" + strings.Join(terms, " || ") + ")"
}

// onlyOwn is true when two maps differ in keys alone that fit.
func onlyOwn(before, after, fits string) string {
	same := func(of, other string) string {
		return of + ".all(k, (k in " + other + " && " + other + "[k] == " + of + "[k]) || " + fits + ")"
	}
	return same(after, before) + " && " + same(before, after)
}

// leastLife is how many seconds the life of a released pod is bounded to at least. The hub gives it more from now on
// (plan.StandInTime), but a policy does not know what time it is.
const leastLife = "3600"

// pods lets the account change its own labels and annotations, the deletion cost, and what a release and a probe need.
func pods(a Account) rule {
	var gates []string
	for _, prefix := range a.Prefixes {
		gates = append(gates, prefix+"/probe")
	}
	updates := func(expression string) string { return `request.operation != "UPDATE" || (` + expression + ")" }
	same := func(fields ...string) string {
		terms := make([]string, 0, len(fields))
		for _, field := range fields {
			terms = append(terms, "object."+field+" == oldObject."+field)
		}
		return strings.Join(terms, " && ")
	}
	released := a.has("variables.annotations", "/released")
	return rule{
		suffix:    "pods",
		resources: []admissionregistrationv1.RuleWithOperations{on("", "CREATE UPDATE DELETE", "pods")},
		variables: []admissionregistrationv1.Variable{
			variable("pod", "object != null ? object : oldObject"),
			variable("labels", "variables.pod.metadata.?labels.orValue({})"),
			variable("annotations", "variables.pod.metadata.?annotations.orValue({})"),
			variable("oldLabels", "oldObject != null ? oldObject.metadata.?labels.orValue({}) : {}"),
			variable("oldAnnotations", "oldObject != null ? oldObject.metadata.?annotations.orValue({}) : {}"),
		},
		validations: []admissionregistrationv1.Validation{
			deny(updates(onlyOwn("variables.oldLabels", "variables.labels", "("+a.own("k")+` || k == "pod-template-hash")`)),
				"may only change its own labels of pods"),
			deny(updates(`variables.oldLabels[?"pod-template-hash"] == variables.labels[?"pod-template-hash"] || (`+released+
				` && "pod-template-hash" in variables.oldLabels && variables.labels[?"pod-template-hash"] == `+
				`optional.of("released-" + variables.oldLabels["pod-template-hash"]))`),
				"may only change pod-template-hash to release a pod"),
			deny(updates(`variables.oldLabels[?"pod-template-hash"] == variables.labels[?"pod-template-hash"] || has(object.spec.activeDeadlineSeconds)`),
				"may only release a pod that ends by activeDeadlineSeconds"),
			deny(updates(onlyOwn("variables.oldAnnotations", "variables.annotations", "("+a.own("k")+" || k == "+quote(policy.DeletionCost)+")")),
				"may only change its own annotations of pods, and the deletion cost"),
			deny(updates(same("metadata.?ownerReferences", "metadata.?finalizers")), "may not change owners or finalizers of pods"),
			deny(updates(same("spec.containers", "spec.?initContainers", "spec.?ephemeralContainers", "spec.?tolerations", "spec.?nodeSelector",
				"spec.?affinity", "spec.?terminationGracePeriodSeconds")), "may not change what a pod runs, nor where"),
			deny(updates("oldObject.spec.?schedulingGates.orValue([]).all(g, g.name in "+list(gates...)+
				" || object.spec.?schedulingGates.orValue([]).exists(n, n.name == g.name))"), "may only take its own scheduling gate away"),
			deny(updates("object.spec.?activeDeadlineSeconds == oldObject.spec.?activeDeadlineSeconds || ("+released+
				` && variables.labels[?"pod-template-hash"].orValue("").startsWith("released-") && object.spec.?activeDeadlineSeconds.orValue(0) >= `+leastLife+")"),
				"may only bound the life of a pod that it releases, and to no less than an hour"),
			deny(updates(`variables.oldLabels[?"pod-template-hash"] == variables.labels[?"pod-template-hash"] || !(request.namespace in `+systemNamespaces()+")"),
				"may not release pods of Kubernetes' own namespaces"),
			deny(`request.operation == "UPDATE" || (`+a.probe()+")", "may only create and delete probes"),
			deny(`request.operation != "CREATE" || (`+harmless("object")+` && !has(object.spec.volumes) && !has(object.spec.initContainers) && `+
				`object.spec.?automountServiceAccountToken == optional.of(false) && size(object.spec.containers) == 1 && `+
				without("object.spec.containers[0]", "env", "envFrom", "command", "args", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe")+" && "+
				`(!has(object.metadata.ownerReferences) || request.?dryRun.orValue(false)))`,
				"may only create pods that run nothing but a pause container, without volumes, environment or token"),
			deny(`request.operation != "CREATE" || object.spec.?serviceAccountName.orValue("default") == "default"`,
				"may only create pods that run as the account that any pod has"),
			deny(`request.operation != "CREATE" || size(object.metadata.?finalizers.orValue([])) == 0`, "may not keep the pods that it creates by finalizers"),
			deny(`request.operation != "CREATE" || object.spec.?priorityClassName.orValue("") in `+list("", spot.ProbePriorityClass),
				"may only create pods that preempt none"),
		},
	}
}

// without is true when an object has none of the fields.
func without(object string, fields ...string) string {
	terms := make([]string, 0, len(fields))
	for _, field := range fields {
		terms = append(terms, "!has("+object+"."+field+")")
	}
	return strings.Join(terms, " && ")
}

// has is true when a map has a key of the account's with that suffix.
func (a Account) has(in, suffix string) string {
	terms := make([]string, 0, len(a.Prefixes))
	for _, prefix := range a.Prefixes {
		terms = append(terms, quote(prefix+suffix)+" in "+in)
	}
	return "(" + strings.Join(terms, " || ") + ")"
}

// probe is true for a pod that says that it is a probe.
func (a Account) probe() string {
	return `variables.labels[?"app.kubernetes.io/managed-by"] == optional.of("plimsoll") && ` +
		`variables.labels[?"app.kubernetes.io/name"] == optional.of(` + quote(spot.ProbePriorityClass) + `) && ` + a.has("variables.labels", "/slot")
}

// evictions name the UID of the pod, and leave Kubernetes' own namespaces alone.
func evictions() rule {
	return rule{
		suffix:    "evictions",
		resources: []admissionregistrationv1.RuleWithOperations{on("", create, "pods/eviction")},
		validations: []admissionregistrationv1.Validation{
			deny("!(request.namespace in "+systemNamespaces()+")", "may not evict pods of Kubernetes' own namespaces"),
			deny("object.?deleteOptions.?preconditions.?uid.hasValue()", "may only evict a pod by its UID"),
			deny("!object.?deleteOptions.?gracePeriodSeconds.hasValue()", "may not shorten the time that a pod has to end"),
		},
	}
}

// events are its own, before and after. An Event has two names of who reports it, and a recorder of events.k8s.io leaves one of them out.
func events() rule {
	own := func(of string) string {
		names := "[" + of + `.?source.?component.orValue(""), ` + of + `.?reportingComponent.orValue("")]`
		return names + `.all(n, n == "" || n.startsWith("plimsoll")) && ` + names + `.exists(n, n != "")`
	}
	return rule{
		suffix:    "events",
		resources: []admissionregistrationv1.RuleWithOperations{on("", "CREATE UPDATE", "events")},
		validations: []admissionregistrationv1.Validation{
			deny(own("object")+" && (oldObject == null || ("+own("oldObject")+"))", "may only write its own Events"),
		},
	}
}
