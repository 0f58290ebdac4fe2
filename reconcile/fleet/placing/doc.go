// Package placing carries out what package fleet plans: it reads FleetPlacements from the hub cluster and what their workloads
// run in members, and writes how many replicas each member has.
//
// What is decided and what is done are apart. Pure, and tested without clusters:
//
//   - target.go: which workload a FleetPlacement is about;
//   - policy.go: what it asks for, in the words of package fleet;
//   - observed.go: what a member runs of it, as far as its cache, the last decision and the last sight show;
//   - orders.go: what was set for a member of late, which bounds what is believed of it;
//   - refusal.go: what happens to a member to which writes fail;
//   - decide.go: all of it together: the plan, and from it what each member is to have;
//   - status.go, conditions.go: what is said of it; texts.go: in how many bytes.
//
// The rest has effects: controller.go makes a round whenever something may have changed, as often as loop.go says, of what follow.go
// reads in the hub cluster and look.go finds of members; write.go brings decisions to the hub cluster and then to members; agent.go
// asks a member and writes to it, one goroutine for each, so that one that does not answer delays nobody else; access.go is the rights that
// this needs; metrics.go; events.go; history.go notes the result of supplies, and archive.go keeps it; known.go and suppose.go are for those who show
// FleetPlacements and ask about them.
//
// What was decided is in the status before anything is done about it, and how many replicas there are is read from the members.
// So a replica of the hub that takes over, or starts again, goes on where the one before it stopped.
package placing
