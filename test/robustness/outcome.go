package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// An Outcome is what was found, a sentence for each thing that must not be, and how much there was to find it in.
type Outcome struct {
	DoubleWrites, FloorBreaks, BudgetBreaks, LostOrders []string
	// Undecided are writes without a tenure that the slowness of the machine explains.
	Undecided []string

	Faults                                              []Injection
	Writes, Evictions, Orders, Grants, Tenures, Skipped int
	// Slowest is the longest delay that was measured.
	Slowest time.Duration
}

// found are the sentences by the name of their figure.
func (v *Outcome) found() map[string][]string {
	return map[string][]string{
		"robustness-double-writes": v.DoubleWrites, "robustness-floor-breaks": v.FloorBreaks,
		"robustness-budget-breaks": v.BudgetBreaks, "robustness-lost-orders": v.LostOrders,
	}
}

// clean reports whether nothing was found.
func (v *Outcome) clean() bool {
	return len(v.DoubleWrites)+len(v.FloorBreaks)+len(v.BudgetBreaks)+len(v.LostOrders) == 0
}

// faultsPerMinute is how many faults a run does at least: 60 in its ten minutes. With less it shows little, whatever it found.
const faultsPerMinute = 6

// enough returns an error when a run of some length did fewer faults than it should, or faults in nothing that could be judged.
func (v *Outcome) enough(o Options) error {
	least := int(o.Duration.Minutes() * faultsPerMinute)
	if o.Faults > 0 {
		least = o.Faults
	}
	switch {
	case len(v.Faults) < least:
		return fmt.Errorf("%d faults are too few, want at least %d", len(v.Faults), least)
	case v.Writes == 0 || v.Orders == 0:
		return fmt.Errorf("%d writes and %d orders are nothing to judge by", v.Writes, v.Orders)
	}
	return nil
}

// print writes the outcome for people.
func (v *Outcome) print(to io.Writer) {
	counts := map[string]int{}
	for _, f := range v.Faults {
		counts[f.Fault]++
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&out, "%4d  %s\n", counts[name], name)
	}
	fmt.Fprintf(&out, "robustness-faults %d\n", len(v.Faults))
	found := v.found()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&out, "%s %d\n", name, len(found[name]))
		for _, sentence := range found[name] {
			fmt.Fprintf(&out, "    %s\n", sentence)
		}
	}
	for _, sentence := range v.Undecided {
		fmt.Fprintf(&out, "undecided, for the machine was as slow: %s\n", sentence)
	}
	fmt.Fprintf(&out, "judged: %d writes and %d evictions in %d tenures (%d writes of the Lease), %d orders, %d requests that API servers admitted without the hub; slowest request of ours %s\n",
		v.Writes, v.Evictions, v.Tenures, v.Grants, v.Orders, v.Skipped, v.Slowest.Round(time.Millisecond))
	_, _ = io.WriteString(to, out.String())
}

// evictedBy is the process that was granted the first eviction of each pod, "" where it was somebody else.
func evictedBy(evictions []kube.AuditEvent) map[string]string {
	slices.SortStableFunc(evictions, func(a, b kube.AuditEvent) int { return a.Answered.Compare(b.Answered) })
	first, seen := map[string]string{}, map[string]bool{}
	for _, e := range evictions {
		if seen[e.Name] {
			continue
		}
		seen[e.Name] = true
		if fleet.ByHub(e) {
			first[e.Name], _, _ = strings.Cut(e.UserAgent, " ")
		}
	}
	return first
}

// keep writes all that was judged, so that a finding can be looked into.
func (r *run) keep(v *Outcome, grants []Grant, writes []Write, evictions []Eviction, orders []Order, runs []Execution) error {
	subjects := map[string]any{}
	for _, s := range r.load.subjects {
		moments, _ := s.history.Moments() // what there is of them
		subjects[s.workload.String()] = map[string]any{"wishes": s.list(), "moments": moments}
	}
	content, err := json.MarshalIndent(map[string]any{
		"seed": r.options.Seed, "outcome": v, "grants": grants, "writes": writes, "evictions": evictions,
		"orders": orders, "runs": runs, "subjects": subjects,
	}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.options.Dir, "history.json"), content, 0o600)
}
