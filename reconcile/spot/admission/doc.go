// Package admission makes the JSON patch that puts a new pod on its slot and sends it to its capacity type.
//
// A [Patcher] takes what an admission request shows of a pod ([Incoming]), how the member's pods are steered and the slot that
// package slots gives the pod, and appends the patch to a buffer. It allocates next to nothing, for every pod of a member comes by
// here; it does no I/O and asks for no time.
//
//   - admit.go: what is read of a pod and what is changed in it ([Incoming], [Patcher]);
//   - spread.go: topology spread constraints that are to count the nodes of both capacity types ([Spread]);
//   - patch.go: JSON patches (RFC 6902), by appending to a byte slice.
//
// It imports capacity, policy, plan and slots.
package admission
