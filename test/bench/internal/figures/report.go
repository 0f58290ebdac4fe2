// Package figures has the entries that the project promises something about, and the report of what was measured.
//
// Where to look: report.go for the entries, their targets, the table and the file; figures.go for quantiles.
package figures

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// An entry is a figure that we promise something about. Its name is kept for good: figures are compared over time by it.
type entry struct {
	name, unit string
	target     float64
	atLeast    bool // the target is a lower bound, else an upper one
	known      bool // it is written down, and has no target: another entry judges it
}

// entries in the order of the table.
var entries = []entry{
	{name: "burst-mix-error", unit: "pods"},
	{name: "burst-evictions", unit: "evictions"},
	{name: "scale-mix-error", unit: "pods"},
	{name: "scale-evictions", unit: "evictions"},
	{name: "hub-rss-mb", unit: "MB", target: 80},
	{name: "policy-first-move-s", unit: "s", target: 1},
	{name: "policy-done-s", unit: "s", target: 60},
	{name: "churn-floor-breaks", unit: "breaks"},
	{name: "big-burst-mix-error", unit: "pods"},
	{name: "big-burst-evictions", unit: "evictions"},
	{name: "drought-covered-s", unit: "s", target: 70},
	{name: "drought-ready-evictions", unit: "evictions"},
	{name: "drought-return-s", unit: "s", target: 120},
	{name: "interruption-replaced-s", unit: "s", target: 2},
	{name: "mass-moves-s", unit: "s", target: 600},
	{name: "plan-p99-ms", unit: "ms", target: 5},
	{name: "mass-rss-mb", unit: "MB", target: 250},
	{name: "idle-writes", unit: "writes"},
	{name: "event-to-reconcile-p99-ms", unit: "ms", target: 5},
	{name: "failover-s", unit: "s", target: 10},
	{name: "failover-lists", unit: "lists"},
	{name: "handover-s", unit: "s", target: 1},
	{name: "handover-lost-admissions", unit: "calls"},
	{name: "admission-rps", unit: "1/s", target: 10000, atLeast: true},
	{name: "admission-p99-ms", unit: "ms", known: true},
	{name: "admission-rps-ratio", unit: "times", target: 0.9, atLeast: true},
	{name: "admission-p99-ratio", unit: "times", target: 1.25},
	{name: "hostile-rss-ratio", unit: "times", target: 1.5},
	{name: "hostile-admission-ratio", unit: "times", target: 1.5},
	{name: "hostile-event-ratio", unit: "times", target: 1.5},
	{name: "hostile-all-rss-ratio", unit: "times", target: 1.5},
	{name: "hostile-all-admission-ratio", unit: "times", target: 1.5},
	{name: "hostile-all-event-ratio", unit: "times", target: 1.5},
	{name: "hostile-admission-control-ratio", unit: "times", known: true},
	{name: "hostile-event-control-ratio", unit: "times", known: true},
	{name: "hostile-admission-bare-ratio", unit: "times", known: true},
	{name: "hostile-event-bare-ratio", unit: "times", known: true},
	{name: "hostile-processor-percent", unit: "%", target: 20},
	{name: "hostile-floor-breaks", unit: "breaks"},
	{name: "hostile-logins-failed", unit: "logins"},
	{name: "framework-overhead-percent", unit: "%", target: 10},
	{name: "webapp-created-p99-ms", unit: "ms", target: 150},
	{name: "webapp-3000-s", unit: "s", target: 180},
	{name: "webapp-noop-ms", unit: "ms", target: 1},
	{name: "webapp-ledger-kb", unit: "KB", target: 4},
	{name: "plan-80000-ms", unit: "ms", target: 40},
	{name: "plan-observed-80000-ms", unit: "ms", known: true},
	{name: "fleet-plan-s", unit: "s", target: 2},
	{name: "fleet-plan-100-ms", unit: "ms", target: 5},
	{name: "fleet-scale-evictions", unit: "evictions"},
	{name: "fleet-idle-writes", unit: "writes"},
	{name: "fleet-drought-covered-s", unit: "s", target: 20},
	{name: "fleet-drought-return-s", unit: "s", target: 300},
	{name: "fleet-drought-home-s", unit: "s", known: true},
	{name: "fleet-ready-evictions", unit: "evictions"},
	{name: "fleet-loss-covered-s", unit: "s", target: 30},
	{name: "fleet-loss-short", unit: "moments"},
	{name: "fleet-loss-return-s", unit: "s", target: 120},
	{name: "fleet-floor-breaks", unit: "breaks"},
	{name: "ordinals-20000-s", unit: "s", target: 1},
	{name: "join-false-unreachable", unit: "members"},
	{name: "restart-false-unreachable", unit: "members"},
	{name: "slow-member-ready-s", unit: "s", target: 30},
	{name: "watch-reopen-s", unit: "s", target: 2},
	{name: "image-mb", unit: "MB", target: 60},
	{name: "page-first-paint-ms", unit: "ms", target: 1000},
	{name: "page-1000-members-ms", unit: "ms", target: 3000},
	{name: "page-kb", unit: "KB", target: 150},
	{name: "gitops-commit-to-placed-s", unit: "s", target: 60},
	{name: "e2e-failover-s", unit: "s", target: 10},
	{name: "e2e-floor-breaks", unit: "breaks"},
	{name: "e2e-double-writes", unit: "writes"},
	{name: "karpenter-flap-evictions", unit: "evictions"},
	{name: "karpenter-flap-extra-nodes", unit: "nodes"},
	{name: "karpenter-consolidation-floor-breaks", unit: "breaks"},
	{name: "karpenter-interruption-floor-breaks", unit: "breaks"},
	{name: "hostile-escapes", unit: "escapes"},
	{name: "api-get-p99-ms", unit: "ms", target: 2},
	{name: "api-get-bare-p99-ms", unit: "ms", known: true},
	{name: "api-get-rps", unit: "1/s", target: 5000, atLeast: true},
	{name: "api-list-p99-ms", unit: "ms", target: 20},
	{name: "api-watch-p99-ms", unit: "ms", target: 100},
	{name: "api-requeue-p99-ms", unit: "ms", target: 50},
	{name: "api-watcher-kb", unit: "KB", target: 20},
	{name: "api-rest-ratio", unit: "times", target: 0.6, atLeast: true},
}

// A Report collects what was measured.
type Report struct {
	values map[string]float64
	notes  []string
}

// New returns an empty report.
func New() *Report { return &Report{values: map[string]float64{}} }

// Record notes the figure of an entry.
func (r *Report) Record(name string, value float64) { r.values[name] = value }

// Note adds a line under the table.
func (r *Report) Note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// missed is true of a figure that is not what the entry asks for.
func (e entry) missed(value float64) bool {
	switch {
	case e.known:
		return false
	case e.atLeast:
		return value < e.target
	}
	return value > e.target
}

// Missed is an error that names the figures that are not what their entries ask for, and nil when there are none.
func (r *Report) Missed() error {
	var problems []string
	for _, e := range entries {
		if value, measured := r.values[e.name]; measured && e.missed(value) {
			problems = append(problems, fmt.Sprintf("%s is %s %s, want %s", e.name, figure(value), e.unit, e.wants()))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("targets missed: %s", strings.Join(problems, "; "))
}

func (e entry) wants() string {
	switch {
	case e.known:
		return "-"
	case e.atLeast:
		return fmt.Sprintf("≥ %g", e.target)
	case e.target == 0:
		return "0"
	}
	return fmt.Sprintf("≤ %g", e.target)
}

// Print writes the table of what was measured.
func (r *Report) Print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "name\tvalue\tunit\ttarget\t\t")
	for _, e := range entries {
		value, measured := r.values[e.name]
		if !measured {
			continue
		}
		mark := "ok"
		switch {
		case e.known:
			mark = ""
		case e.missed(value):
			mark = "MISSED"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t\n", e.name, figure(value), e.unit, e.wants(), mark)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(to, strings.Join(append([]string{""}, r.notes...), "\n"))
	return err
}

// figure writes a value with as many digits as mean something.
func figure(value float64) string {
	switch {
	case value == float64(int64(value)) || value >= 1000:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.2f", value)
}

// row is an entry of the file.
type row struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// others are the rows of a file that are not ours: test/robustness writes there as well. A file that cannot be read has none.
func others(path string) []row {
	var rows []row
	content, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(content, &rows) != nil {
		return nil
	}
	return slices.DeleteFunc(rows, func(r row) bool {
		return slices.ContainsFunc(entries, func(e entry) bool { return e.name == r.Name })
	})
}

// Write stores what was measured as JSON.
func (r *Report) Write(path string) error {
	rows := []row{}
	for _, e := range entries {
		if value, measured := r.values[e.name]; measured {
			rows = append(rows, row{e.name, value, e.unit})
		}
	}
	content, err := json.MarshalIndent(append(rows, others(path)...), "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
