package main

import (
	"fmt"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// budgetBreaks finds pods that the hub took in another way than by an eviction that names the pod by its UID. API servers
// refuse evictions that a budget does not allow; what goes past the Eviction API, or takes a successor of the same name, goes
// past the budget. Pods in the hub's own namespace are its probes, which nobody's budget covers.
func budgetBreaks(member string, events []kube.AuditEvent, evictions []Eviction) (broken []string) {
	for _, e := range events {
		if e.Resource == "pods" && e.Subresource == "" && e.Namespace != fleet.Namespace && fleet.ByHub(e) &&
			(e.Verb == "delete" || e.Verb == "deletecollection") {
			broken = append(broken, fmt.Sprintf("%s: %s %s at %s", member, e.Verb, e.URI, e.Received.Format(clock)))
		}
	}
	for _, e := range evictions {
		if e.Member == member && e.UID == "" {
			broken = append(broken, fmt.Sprintf("%s: %s asked at %s for the eviction of %s/%s without its UID (body unread: %t)",
				member, e.Process, e.At.Format(clock), e.Namespace, e.Pod, e.Unread))
		}
	}
	return broken
}
