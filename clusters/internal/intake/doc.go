// Package intake bounds what a member's API server may send: how much, how compressed, at what pace and for how long. Each
// member has limits of its own, so that none takes what another needs.
//
// Large answers and events are read into memory of package bodies, and given back when they have been decoded. Where to look:
//
//   - intake.go: the [Intake], a round tripper that puts the bounds together; timeout.go: how long answers and watches may take.
//   - frames.go: events of a watch, one by one; decodes.go: how many large parts are decoded at once; pace.go: how fast.
//   - unzip.go: compressed answers; named.go: names that no API server would take.
//   - budget.go: the memory that a member's caches may take, weighed by weigh.go; metered_watch.go: what a watch adds to it; fleet_budget.go:
//     what the caches of all members may take.
package intake
