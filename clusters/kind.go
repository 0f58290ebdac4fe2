package clusters

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind declares what the hub caches of one kind in every member.
//
// Several controllers may declare the same kind; the declarations are merged with [MergeKinds]: the cache holds the
// union of the fields they keep, and of the indexes. Two declarations with different selectors are an error.
type Kind struct {
	// Object is a typed, empty object of the kind, for example &corev1.Pod{}.
	Object client.Object
	// Labels restricts the cache to matching objects. Nil: all.
	Labels labels.Selector
	// Fields restricts the cache to matching objects. Nil: all.
	Fields fields.Selector
	// Keep copies the fields that the declaring controller reads from an object of the API server into the one that is
	// cached. Name, namespace, UID, resourceVersion, generation, creation and deletion timestamps and owner references
	// are always kept; labels, annotations, spec and status are not, unless Keep copies them. Nil: the whole object
	// (without managedFields) is cached. The member's client refuses to Update a kind that is trimmed.
	Keep func(from, into client.Object)
	// Indexes are field indexes by name, for client.MatchingFields.
	Indexes map[string]client.IndexerFunc
	// Optional kinds may be missing in a member without making it Degraded.
	Optional bool
}

// Access is what the reconcilers need to be allowed in a member; it is asked for with a SelfSubjectAccessReview.
type Access struct {
	// Group, Resource and Subresource as in an RBAC rule; a Name restricts it to one object.
	Group, Resource, Subresource, Name string
	// Verbs that are needed: get, list, watch, create, update, patch.
	Verbs []string
	// For says in a few words what is lost without it; it appears in the member's condition.
	For string
}

// Fence decides whether this replica may start a write to a member now.
type Fence interface {
	// MayWrite returns nil when a write to member that is started now and ends before the request timeout has passed is
	// still covered by this replica's ownership; else an error that says who owns the member. Safe for concurrent use.
	MayWrite(member string) error
}
