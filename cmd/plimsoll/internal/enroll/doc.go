// Package enroll makes a cluster a member, and undoes it: what a person with rights in a member and in the hub cluster
// does once, so that the hub itself needs few.
//
// In the member it makes a service account, a role with no more than the hub uses, the policies that bind the account (package
// hub/confine), an empty webhook configuration that the hub keeps current, and a token that the hub renews; in the hub cluster the
// registration Secret with that token. Everything is applied server-side under a field manager of its own, so that doing it
// again changes nothing, and what somebody else made is used as it is.
//
// Where to look: role.go, writes.go and policies.go for what the hub may do in a member, objects.go for what is made, register.go and unregister.go
// for the steps, rotate.go, mark.go and workload.go for what a person changes afterwards, apply.go for one step, kubeconfig.go for what is read from and written into kubeconfigs, render.go for
// --dry-run.
//
// It never puts a token into an error or a line of output, and deletes nothing that it has not made.
package enroll
