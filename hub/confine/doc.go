// Package confine says what the hub's account may write in a member, beyond what RBAC can say: as
// ValidatingAdmissionPolicies, which the member's API server evaluates for each write of that account.
//
// RBAC grants "patch pods"; a policy grants "change a slot label of a pod". The policies deny what they do not name, so that
// a role that was widened by mistake widens nothing of what is Kubernetes' own.
//
// Where to look: kinds.go for what may be written at all, pods.go, webhooks.go and identity.go (the Lease that shows which cluster it is) for
// what may be changed in it, parts.go for what objects of modules consist of, harmless.go for what pods may be, writes.go for what reconcilers of other modules write, policy.go for how it is put together. docs/decisions/0015 has every write of the hub in a member, with its policy.
//
// It never talks to a cluster. The policies bind one user name; they cannot bind what the hub answers to the admission
// webhook, because the API server writes that for whoever creates the pod.
package confine
