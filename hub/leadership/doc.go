// Package leadership says which of several replicas acts: the holder of one Lease in the hub cluster.
//
// A [Lease] is all that a program with controllers needs to run twice: [Lease.Run] contends for it, it is the fence of the
// members' clients ([clusters.Options].Fence), and [Lease.Hold] keeps the keys of a runtime from running while another replica
// acts. The hub is built on the same three.
//
// A write that another replica could see overtaken is never begun: docs/decisions/0012 has the argument, and the model test
// tries to break it.
//
// Where to look: options.go to make one, lease.go for the contest, term.go for what a replica knows of it, standing.go for what it may do by that, watch.go for
// following it, writes.go for writes that are under way, handovers.go for metrics.
package leadership
