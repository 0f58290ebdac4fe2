package confine

import (
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// grant is one thing that the account may write: empty fields match anything, but for the subresource.
type grant struct {
	group, resource, subresource string
	operations                   []string
	namespace, name              string
	apart                        bool // from Kubernetes' own namespaces, the account's and the hub's
}

const (
	create = "CREATE"
	update = "UPDATE"
	remove = "DELETE"
)

// grants are all that the account may write of Kubernetes' own kinds. RBAC decides beside it.
func grants(a Account) []grant {
	const admission = "admissionregistration.k8s.io"
	all := []grant{
		// Slots, releases, probes.
		{resource: "pods", operations: []string{update}},
		{resource: "pods", operations: []string{create, remove}, namespace: a.ProbeNamespace},
		{resource: "pods", subresource: "eviction", operations: []string{create}},
		// How many replicas a fleet placement has there; no more of a workload than its scale subresource.
		{group: "apps", resource: "deployments", subresource: "scale", operations: []string{update}, apart: true},
		{group: "apps", resource: "statefulsets", subresource: "scale", operations: []string{update}, apart: true},
		{group: "apps", resource: "replicasets", subresource: "scale", operations: []string{update}, apart: true},
		{resource: "events", operations: []string{create, update}},
		{group: admission, resource: "mutatingwebhookconfigurations", operations: []string{update}, name: a.Webhook},
		{group: admission, resource: "validatingwebhookconfigurations", operations: []string{update}, name: a.Webhook},
		// Its own token.
		{resource: "serviceaccounts", subresource: "token", operations: []string{create}, namespace: a.Namespace, name: a.Name},
		// What a hub keeps where it runs, for a member that is the hub cluster itself: Leases, its authority, tokens.
		{group: "coordination.k8s.io", resource: "leases", operations: []string{create, update, remove}, namespace: a.Namespace},
		{resource: "configmaps", operations: []string{create, update}, namespace: a.Namespace},
		{group: "events.k8s.io", resource: "events", operations: []string{create, update}, namespace: a.RegistrationNamespace},
		{resource: "secrets", operations: []string{create, update}, namespace: a.Namespace},
	}
	for _, kind := range a.keptKinds() {
		all = append(all, grant{group: "apiextensions.k8s.io", resource: "customresourcedefinitions", operations: []string{update}, name: kind.String()})
	}
	if a.RegistrationNamespace != a.Namespace {
		all = append(all, grant{resource: "secrets", operations: []string{update}, namespace: a.RegistrationNamespace})
	}
	for i := range a.Resources {
		for _, part := range a.Resources[i].Parts {
			all = append(all, grant{group: part.Group, resource: part.Resource, operations: []string{create, update, remove}})
		}
	}
	return append(all, a.writes()...)
}

// expression is true for a request that the grant covers. What is empty is left out of a request.
func (g grant) expression() string {
	terms := []string{
		"request.resource.group == " + quote(g.group), "request.resource.resource == " + quote(g.resource),
		`request.?subResource.orValue("") == ` + quote(g.subresource), "request.operation in " + list(g.operations...),
	}
	if g.apart {
		terms = append(terms, "variables.apart")
	}
	if g.namespace != "" {
		terms = append(terms, `request.?namespace.orValue("") == `+quote(g.namespace))
	}
	if g.name != "" {
		terms = append(terms, `request.?name.orValue("") == `+quote(g.name))
	}
	return "(" + strings.Join(terms, " && ") + ")"
}

// kinds denies every write of Kubernetes' own kinds that no grant covers. Kinds of other groups are left to RBAC: the owner of
// a member grants them one by one to reconcilers of their own.
func kinds(a Account) rule {
	all := grants(a)
	terms := make([]string, 0, len(all))
	for _, g := range all {
		terms = append(terms, g.expression())
	}
	message := "may only write pods, evictions, numbers of replicas, Events, its webhook configurations, "
	for i := range a.Resources {
		if len(a.Resources[i].Parts) > 0 {
			message += "the parts of " + a.Resources[i].Title + " "
		}
	}
	message += "and its own token"
	variables := []admissionregistrationv1.Variable{variable("apart", a.apart(`request.?namespace.orValue("")`))}
	for _, g := range a.writes() {
		message += ", and outside of the system's namespaces " + g.resource
	}
	return rule{
		suffix:    "kinds",
		variables: variables,
		resources: []admissionregistrationv1.RuleWithOperations{on("*", "CREATE UPDATE DELETE CONNECT", "*/*")},
		conditions: []admissionregistrationv1.MatchCondition{{
			Name: "of-kubernetes-own-groups", Expression: `!request.resource.group.contains(".") || request.resource.group.endsWith(".k8s.io")`,
		}},
		validations: []admissionregistrationv1.Validation{
			deny(strings.Join(terms, " ||\n"), message),
			deny(`request.resource.resource != "secrets" || request.operation == "DELETE" || object.type != "kubernetes.io/service-account-token"`,
				"may not ask for the token of a service account by a Secret"),
			deny(fmt.Sprintf(`request.resource.resource != "serviceaccounts" || request.?subResource.orValue("") != "token" || object.spec.expirationSeconds <= %d`,
				int64(a.TokenLife/time.Second)), fmt.Sprintf("may not ask for a token that lives longer than %s", a.TokenLife)),
		},
	}
}
