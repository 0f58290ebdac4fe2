package hub

import "github.com/plimsoll-dev/plimsoll/clusters"

// namespacesOf returns for which namespaces a member is registered; nil: for the whole cluster.
func namespacesOf(provider *clusters.Provider) func(member string) []string {
	return func(name string) []string {
		member, ok := provider.Member(name)
		if !ok {
			return nil
		}
		return member.Namespaces()
	}
}
