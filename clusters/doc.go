// Package clusters turns registration Secrets into members: validated credentials, a transport with fence, limits and
// metrics, warm caches, and a health that is always known.
//
// It does not depend on reconcilers: its caller names the kinds to cache ([Kind]), and it passes members to a multicluster.Aware.
// It never runs a program, reads a file or dials an address that a kubeconfig names, unless the hub's configuration
// allows it; of what a kubeconfig or a member contains, it shows only names, addresses and versions; and no
// member may delay another.
//
// Where to look, in the order in which a cluster joins:
//
//   - provider.go: the [Provider], what others call; options.go its options; index.go indexes; secrets.go which Secrets it
//     sees, shared.go those that hold for all members; registry.go who is there.
//   - actor.go: one goroutine for each registration, which keeps the running member equal to the Secret; claims.go for two Secrets that
//     lead to one cluster, distinguished by actor_identity.go and by proofs that go through both: proof.go, proofs.go, identity.go.
//     layout.go: where registrations should be.
//   - package kubeconfig: what a kubeconfig may say, and where a server may be; reasons.go: why else a registration is refused.
//   - member.go: the [Member], report.go what it reports. transport.go combines the layers of its transport:
//     breaker.go, fence.go (and which errors say that nothing was sent), and package intake, which bounds answers.
//   - health.go, probe.go, classify.go: whether the API server answers, which cluster it is, and what is wrong.
//   - warm.go, cache.go, mapper.go: kinds come and go one by one; defined.go: one comes when its definition does; kind.go, merge.go and package caching: what is cached of them; joins.go: how
//     many members begin at once; watching.go: which watches are open. Package paging reads live lists page by page.
//   - access.go, permissions.go: what the member permits. namespaces.go, scope.go: members that are named namespaces of a cluster.
//   - assess.go: all of this as one [Status] (status.go); record.go, metrics.go and package notify publish it.
package clusters
