package clusters

// Reasons of the state Refused, beside those of package kubeconfig.
const (
	ReasonDuplicateCluster      = "DuplicateCluster"      // an older Secret registers the same cluster
	ReasonInvalidNamespaces     = "InvalidNamespaces"     // the annotation with the member's namespaces cannot be used
	ReasonOverlappingNamespaces = "OverlappingNamespaces" // an older Secret registers a namespace of it, in the same cluster
	ReasonIdentityNotShown      = "IdentityNotShown"      // it may be the cluster of another registration, and does not let the hub find out
)
