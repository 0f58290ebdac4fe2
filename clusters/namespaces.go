package clusters

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// NamespacesAnnotation on a registration Secret names the namespaces, separated by commas, that the member is registered
// for. Without it the member is the whole cluster.
const NamespacesAnnotation = "plimsoll.dev/namespaces"

// ParseNamespaces reads the value of a [NamespacesAnnotation]: DNS labels separated by commas, at least one; spaces around
// them and repetitions do not matter. It returns them in order. An error is a [*RefusedError].
func ParseNamespaces(value string) ([]string, error) {
	var namespaces []string
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			return nil, kubeconfig.Refuse(ReasonInvalidNamespaces, "annotation %s: names of namespaces separated by commas are wanted, and one of them is empty; "+
				"without the annotation the whole cluster is registered", NamespacesAnnotation)
		}
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, kubeconfig.Refuse(ReasonInvalidNamespaces, "annotation %s: namespace %q: %s", NamespacesAnnotation, name[:min(len(name), 63)], problems[0])
		}
		namespaces = append(namespaces, name)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces), nil
}

// TenantName is the name, in a member that is registered for named namespaces, of an object that the tenants of one
// cluster must not share: each has its own, called after the member.
func TenantName(name, member string) string { return name + "-" + member }

// overlap returns a namespace that is in both lists, "" where that is every one; nil lists every namespace.
func overlap(a, b []string) (namespace string, found bool) {
	switch {
	case a == nil && b == nil:
		return "", true
	case a == nil:
		return b[0], true
	case b == nil:
		return a[0], true
	}
	for _, namespace := range a {
		if slices.Contains(b, namespace) {
			return namespace, true
		}
	}
	return "", false
}
