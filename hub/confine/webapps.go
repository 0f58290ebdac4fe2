package confine

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// webAppKinds are what WebApps consist of.
func webAppKinds() []grant {
	return []grant{
		{group: "apps", resource: "deployments"}, {resource: "services"}, {resource: "serviceaccounts"},
		{group: "policy", resource: "poddisruptionbudgets"}, {group: "autoscaling", resource: "horizontalpodautoscalers"},
	}
}

// webAppParts lets the account write what a WebApp of the same name controls, and has it run nothing that reaches a node or another
// account. Whether that WebApp is there a policy cannot see; Kubernetes deletes the parts of one that is not.
func webAppParts(a Account) rule {
	parts := webAppKinds()
	resources := make([]admissionregistrationv1.RuleWithOperations, 0, len(parts))
	for _, part := range parts {
		resources = append(resources, on(part.group, "CREATE UPDATE DELETE", part.resource))
	}
	controlled := func(object string) string {
		return object + `.metadata.?ownerReferences.orValue([]).exists(r, r.?controller.orValue(false) && r.kind == "WebApp" && ` +
			`r.apiVersion.startsWith("apps.plimsoll.dev/") && r.name == ` + object + `.metadata.name)`
	}
	deployment := func(expression string) string {
		return `request.resource.resource != "deployments" || request.operation == "DELETE" || (` + expression + ")"
	}
	const spec = "object.spec.template.spec"
	return rule{
		suffix:    "webapps",
		resources: resources,
		validations: []admissionregistrationv1.Validation{
			deny("(object == null || "+controlled("object")+") && (oldObject == null || "+controlled("oldObject")+")",
				"may only write what a WebApp of the same name controls"),
			deny("!(request.namespace in "+systemNamespaces()+") && request.namespace != "+quote(a.Namespace),
				"may not write parts of WebApps in Kubernetes' own namespaces, nor in its own"),
			deny(deployment(harmless(spec)+" && !has("+spec+".volumes)"), "may only create Deployments that reach nothing of their node"),
			deny(deployment(spec+`.?serviceAccountName.orValue("") == object.metadata.name`), "may only have pods run as the WebApp's own account"),
			deny(`request.resource.resource != "services" || request.operation == "DELETE" || (!has(object.spec.externalIPs) && object.spec.?type.orValue("ClusterIP") != "ExternalName")`,
				"may not create Services that take addresses over"),
		},
	}
}
