package confine

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// identity lets the account leave a nonce in the Lease by which it is shown what cluster a registration leads to, and nothing else.
func identity(a Account) rule {
	ofLease := "request.?namespace.orValue(\"\") != " + quote(a.Namespace) + " || request.?name.orValue(\"\") != " + quote(clusters.IdentityLease)
	return rule{
		suffix:    "identity",
		resources: []admissionregistrationv1.RuleWithOperations{on("coordination.k8s.io", "CREATE UPDATE DELETE", "leases")},
		variables: []admissionregistrationv1.Variable{
			variable("annotations", "object != null ? object.metadata.?annotations.orValue({}) : {}"),
			variable("oldAnnotations", "oldObject != null ? oldObject.metadata.?annotations.orValue({}) : {}"),
		},
		validations: []admissionregistrationv1.Validation{
			deny(ofLease+` || (request.operation == "UPDATE" && object.?spec == oldObject.?spec && `+
				"object.metadata.?labels == oldObject.metadata.?labels && "+sameOwners+" && "+
				onlyOwn("variables.oldAnnotations", "variables.annotations", "k == "+quote(clusters.NonceAnnotation))+" && "+
				"size(variables.annotations[?"+quote(clusters.NonceAnnotation)+`].orValue("")) <= 64)`,
				"may only change the nonce of its Lease "+clusters.IdentityLease),
		},
	}
}
