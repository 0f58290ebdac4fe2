// Command replay runs placement policies on recorded spot capacity and compares what they reach and what they cost. Package replay
// below reconcile/fleet does that, and has our policy, which is fleet.Plan itself.
//
//   - main.go: the scenarios, the table and build/replay.json;
//   - plot.go: ready replicas and cost over time, as SVG.
package main
