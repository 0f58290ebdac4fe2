package clusters

import (
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind declares what the hub caches of one kind in every member.
//
// Several controllers may declare the same kind; the declarations are merged with [MergeKinds]: the cache holds the
// union of the fields they keep, and of the indexes. Two declarations with different selectors are an error.
type Kind struct {
	// Object is an empty object of the kind: a typed one, for example &corev1.Pod{}, or for a kind without a Go type an
	// *unstructured.Unstructured with nothing but its API version and kind. Readers ask for the same Go type.
	Object client.Object
	// Labels restricts the cache to matching objects. Nil: all.
	Labels labels.Selector
	// Fields restricts the cache to matching objects. Nil: all.
	Fields fields.Selector
	// Needed selects what the declaring controller reads of these. The cache is restricted to it as long as every declaration of the
	// kind has the same. Nil: all.
	Needed fields.Selector
	// Names restricts the cache to objects of these names, each by a list of its own, which a right to single objects allows. Only
	// for kinds without namespaces; declarations are united. Nil: all.
	Names []string
	// Keep copies the fields that the declaring controller reads from an object of the API server into the one that is
	// cached. Name, namespace, UID, resourceVersion, generation, creation and deletion timestamps and owner references
	// are always kept; labels, annotations, spec and status are not, unless Keep copies them. Nil: the whole object
	// (without managedFields) is cached. The member's client refuses to Update a kind that is trimmed.
	Keep func(from, into client.Object)
	// Indexes are field indexes by name, for client.MatchingFields.
	Indexes map[string]client.IndexerFunc
	// Optional kinds may be missing in a member without making it Degraded, unless the member has the kind and forbids it.
	Optional bool
	// Companion kinds are needed only beside an optional kind, in members that have that one: not even forbidding them makes a
	// member Degraded.
	Companion bool
	// PerTenant says that Fields name a single object of which every member that is registered for named namespaces has one
	// of its own, called [TenantName].
	PerTenant bool
}

// Access is what the reconcilers need to be allowed in a member; it is asked for with a
// SelfSubjectRulesReview, and with SelfSubjectAccessReviews where that does not grant it.
type Access struct {
	// Group, Resource and Subresource as in an RBAC rule; a Name restricts it to one object.
	Group, Resource, Subresource, Name string
	// Verbs that are needed: get, list, watch, create, update, patch.
	Verbs []string
	// ClusterScoped resources have no namespaces; all others are asked about namespace by namespace, in a member that is
	// registered for named ones only.
	ClusterScoped bool
	// PerTenant says that every such member has an object of its own in place of Name, called [TenantName].
	PerTenant bool
	// For says in a few words what is lost without it; it appears in the member's condition.
	For string
	// Beside is an empty object of a declared kind: where that is not cached, this is not asked for. Nil: always asked for.
	Beside client.Object
}

// Fence decides whether this replica may start a write to a member now, and counts the writes that are under way. Safe for
// concurrent use.
type Fence interface {
	// BeginWrite permits one write to member, or returns an error that says who owns the member. The write must have ended
	// at until; the zero time means that only the write's own time-out ends it. The caller calls ended, once, when the
	// write can no longer take effect: when it was answered, was never sent, or its time has passed.
	BeginWrite(member string) (until time.Time, ended func(), err error)
}
