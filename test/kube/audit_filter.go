package kube

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Filter says which events are meant. Filters are put together with All, Any and Not.
type Filter func(AuditEvent) bool

// All passes what passes every filter; of none, everything.
func All(filters ...Filter) Filter {
	return func(e AuditEvent) bool {
		for _, filter := range filters {
			if !filter(e) {
				return false
			}
		}
		return true
	}
}

// Any passes what passes one of the filters.
func Any(filters ...Filter) Filter {
	return func(e AuditEvent) bool {
		for _, filter := range filters {
			if filter(e) {
				return true
			}
		}
		return false
	}
}

// Not passes what the filter does not.
func Not(filter Filter) Filter { return func(e AuditEvent) bool { return !filter(e) } }

// ByVerb passes requests with one of these verbs.
func ByVerb(verbs ...string) Filter {
	return func(e AuditEvent) bool { return slices.Contains(verbs, e.Verb) }
}

// ByUser passes requests of this user.
func ByUser(name string) Filter { return func(e AuditEvent) bool { return e.User == name } }

// ByUserAgent passes requests whose user agent begins like this.
func ByUserAgent(prefix string) Filter {
	return func(e AuditEvent) bool { return strings.HasPrefix(e.UserAgent, prefix) }
}

// OnResource passes requests for a resource, written as "pods" or "pods/eviction". "pods" does not pass its
// subresources.
func OnResource(resource string) Filter {
	name, sub, _ := strings.Cut(resource, "/")
	return func(e AuditEvent) bool { return e.Resource == name && e.Subresource == sub }
}

// InNamespace passes requests for objects in a namespace.
func InNamespace(namespace string) Filter {
	return func(e AuditEvent) bool { return e.Namespace == namespace }
}

// Succeeded passes what the API server granted.
func Succeeded(e AuditEvent) bool { return e.Code < 400 }

// DryRun passes requests that were to change nothing.
func DryRun(e AuditEvent) bool {
	_, query, _ := strings.Cut(e.URI, "?")
	values, err := url.ParseQuery(query)
	return err == nil && values.Has("dryRun")
}

// failedOpen begins the annotation by which an API server notes that it went on without the answer of a mutating webhook.
const failedOpen = "failed-open.mutation.webhook.admission.k8s.io/"

// WebhookSkipped passes requests that were admitted although a mutating webhook did not answer, because its failurePolicy is
// Ignore.
func WebhookSkipped(e AuditEvent) bool {
	for key := range e.Annotations {
		if strings.HasPrefix(key, failedOpen) {
			return true
		}
	}
	return false
}

// webhookLatency is the annotation by which an API server notes how long mutating webhooks took, of requests that took half a second.
const webhookLatency = "apiserver.latency.k8s.io/mutating-webhook"

// WebhookSlow passes requests that waited for mutating webhooks for at least that long, as far as the API server has noted it.
func WebhookSlow(least time.Duration) Filter {
	return func(e AuditEvent) bool {
		took, err := time.ParseDuration(e.Annotations[webhookLatency])
		return err == nil && took >= least
	}
}

// Evictions passes evictions that were granted.
func Evictions(e AuditEvent) bool { return EvictionAttempts(e) && Succeeded(e) && !DryRun(e) }

// EvictionAttempts passes every request to evict a pod, whatever came of it.
func EvictionAttempts(e AuditEvent) bool {
	return e.Verb == "create" && e.Resource == "pods" && e.Subresource == "eviction"
}

var writingVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// Writes passes requests that changed something that counts: neither Leases nor the status of nodes, which beat by
// themselves, nor questions that are asked by creating a review or a token. Events count; leave them out with
// Not(OnResource("events")).
func Writes(e AuditEvent) bool {
	if !slices.Contains(writingVerbs, e.Verb) || !Succeeded(e) || DryRun(e) {
		return false
	}
	switch e.APIGroup {
	case "authentication.k8s.io", "authorization.k8s.io":
		return false
	case "coordination.k8s.io":
		return e.Resource != "leases"
	}
	switch e.Resource + "/" + e.Subresource {
	case "nodes/status", "serviceaccounts/token":
		return false
	}
	return e.Resource != ""
}

// Lists passes requests for all objects of a kind: list requests, and watches that begin with all there is, which is
// how client-go's informers list today.
func Lists(e AuditEvent) bool {
	if e.Verb == "list" {
		return true
	}
	_, query, _ := strings.Cut(e.URI, "?")
	values, err := url.ParseQuery(query)
	return e.Verb == "watch" && err == nil && values.Get("sendInitialEvents") == "true"
}

// CountBy counts events by what key says of them, for instance by user agent.
func CountBy(events []AuditEvent, key func(AuditEvent) string) map[string]int {
	counts := map[string]int{}
	for _, e := range events {
		counts[key(e)]++
	}
	return counts
}
