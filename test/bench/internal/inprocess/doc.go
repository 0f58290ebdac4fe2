// Package inprocess has the runs that need no cluster: the product's packages in front of caches and members that are in memory.
//
// Where to look: framework.go for the framework beside bare controller-runtime; ledger.go for what the queue remembers of WebApps;
// ordinals.go for the plan and the admission of large workloads; fleetplan.go for fleet.Plan; api.go for the API behind its own ports
// (with api_backend.go behind it, api_process.go as what it runs, api_bare.go to compare with, api_calls.go and api_paced.go in a
// process of their own before it, and api_requeue.go with the real queue).
package inprocess

import "github.com/plimsoll-dev/plimsoll/test/bench/internal/figures"

// A Bench is where a run writes its figures and reports how far it is.
type Bench struct {
	Report *figures.Report
	Logf   func(format string, args ...any)
}
