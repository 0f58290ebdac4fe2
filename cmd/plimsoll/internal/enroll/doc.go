// Package enroll makes a cluster a member, and undoes it: what a person with rights in a member and in the hub cluster
// does once, so that the hub itself needs few.
//
// In the member it makes a service account, a role with no more than the hub uses, the policies that bind the account (package
// hub/confine), an empty webhook configuration that the hub keeps current, and a token that the hub renews; in the hub cluster the
// registration Secret with that token. Everything is applied server-side under a field manager of its own, so that doing it
// again changes nothing, and what somebody else made is used as it is.
//
// Where to look:
//
//   - role.go, writes.go, policies.go, identity.go: what the hub may do in a member.
//   - objects.go, tenant.go: what is made, and under which names; render.go: --dry-run.
//   - register.go, preflight.go, unregister.go: the steps; cluster.go, apply.go, token.go: one side, and one step of it.
//   - rotate.go, mark.go, workload.go: what a person changes afterwards.
//   - install.go, uninstall.go: custom kinds.
//   - incluster.go: the hub's own cluster as a member; former.go: what its registration was before it had an account of its own.
//   - kubeconfig.go: what is read from kubeconfigs and written into them.
//
// It never puts a token into an error or a line of output, and deletes nothing that it has not made.
package enroll
