// Package nodes keeps what is known about the nodes of one member: their labels, whether they have started, which of them are about to
// go, and which are on their way.
//
// A [Table] is fed by whoever follows the member; admissions and plans ask it. What is not in a cache, because it matters for
// moments only, [Autoscalers] reads from the member's API server when it is asked for.
//
//   - table.go, start.go: the nodes that there are, and how far they have started ([Table]);
//   - interruptions.go: the taints and conditions that announce the end of a node ([Interruptions], [Sign]);
//   - census.go, pools.go: which capacity labels nodes carry or could carry, and the steering that follows ([Census]);
//   - autoscalers.go, claims.go: Events and NodeClaims that announce a node ([Autoscalers.Coming]);
//   - pods.go: what is known of a pod, with its node ([Table.Pods]);
//   - memo.go and podmemo.go: answers about pod templates, which stand until the nodes change ([Table.Contradiction], [Table.Spreads]).
//
// It imports capacity, plan and shortage.
package nodes
