// Package replay runs placement policies on recorded spot capacity and compares what they reach and what they cost. Our policy is
// fleet.Plan itself, fed with what a hub would have seen by then.
//
//   - trace.go: recorded capacity and prices, and what can be left out of them; changes.go: the same by change and not by sample,
//     which is how a hub records its own history; history.go: that history in files of bounded size, and folder.go:
//     those on a disk;
//   - generate.go: synthetic traces by a seed, in the form of recorded ones;
//   - world.go, world_time.go: the simulated fleet, in which policies start and stop instances;
//   - ours.go, observed.go: fleet.Plan, and what it observes;
//   - aged.go: the same with knowledge that a hub cannot have; foretold.go and signs.go: what nearly all knowledge but that of the
//     future would come to;
//   - spothedge.go, single.go: the policies of others;
//   - run.go: one run, and what is counted;
//   - table.go: the policies, and the table;
//   - curve.go: ready replicas and cost over time.
//
// What a policy sees: the result of its own instances (a node or none, ready, notice). Nobody sees the capacity itself.
//
// The command line and the command in test/replay use it. It does not draw: what draws is large.
package replay
