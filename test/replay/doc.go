// Command replay runs placement policies on recorded spot capacity and compares what they reach and what they cost. Our
// policy is fleet.Plan itself, fed with what a hub would have seen by then.
//
//   - trace.go: recorded capacity and prices, and what can be left out of them;
//   - generate.go: synthetic traces by a seed, in the form of recorded ones;
//   - world.go, world_time.go: the simulated fleet, in which policies start and stop instances;
//   - ours.go, observed.go: fleet.Plan, and what it is told;
//   - spothedge.go, single.go: the policies of others;
//   - run.go: one run, and what is counted;
//   - table.go, main.go: the scenarios, the table and build/replay.json;
//   - curve.go, plot.go: ready replicas and cost over time, as SVG.
//
// What a policy is told: what became of its own instances (a node or none, ready, notice). Nobody sees the capacity itself.
package main
