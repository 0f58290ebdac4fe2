package clusters

// Reasons of the state Refused, beside those of package kubeconfig.
const (
	ReasonDuplicateCluster      = "DuplicateCluster"      // an older Secret registers the same cluster
	ReasonInvalidNamespaces     = "InvalidNamespaces"     // the annotation plimsoll.dev/namespaces is invalid
	ReasonOverlappingNamespaces = "OverlappingNamespaces" // an older Secret registers one of these namespaces of the same cluster
	ReasonIdentityNotShown      = "IdentityNotShown"      // another registration may be for the same cluster, and this one does not let the hub find out
)
