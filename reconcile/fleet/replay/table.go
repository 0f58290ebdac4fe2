package replay

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Row is one line of the table.
type Row struct {
	Trace   string  `json:"trace"`
	Without string  `json:"without,omitempty"` // a zone or days that were left out
	Setting Setting `json:"setting"`
	Policy  string  `json:"policy"`
	Figures
}

// contender is a policy by name; a run gets a new one.
type contender struct {
	name string
	make func() Policy
}

// Names of policies.
const (
	Ours   = "plimsoll"
	Hedge1 = "spothedge+1"
	Hedge2 = "spothedge+2"
)

// fleetWide are the policies that use all zones. Ours may run as many replicas beyond what is wanted as are wanted: what it
// runs of them is its own choice, by the same rule for all traces.
func fleetWide(s Setting) []contender {
	return []contender{
		{Ours, func() Policy { return &ours{extra: s.Replicas} }},
		{Hedge1, func() Policy { return &spotHedge{extra: 1} }},
		{Hedge2, func() Policy { return &spotHedge{extra: 2} }},
	}
}

// Compare runs all policies on a trace. It returns what they came to, and what the fleet-wide ones looked like over time.
func Compare(t Trace, s Setting) (rows []Row, curves []*Curve) {
	for _, c := range fleetWide(s) {
		curve := newCurve(c.name, t, s)
		rows = append(rows, Row{Trace: t.Name, Setting: s, Policy: c.name, Figures: Run(t, s, c.make(), curve.watch)})
		curves = append(curves, curve)
	}
	rows = append(rows,
		Row{Trace: t.Name, Setting: s, Policy: "static split, half on-demand, one zone", Figures: overZones(t, s, func(zone int) Policy {
			return staticSplit{zone: zone, onDemand: s.Replicas / 2}
		})},
		Row{Trace: t.Name, Setting: s, Policy: "pending timeout, one zone", Figures: overZones(t, s, func(zone int) Policy {
			return &pendingTimeout{zone: zone, timeout: 60}
		})})
	return rows, curves
}

// overZones is the average of runs in one zone each, for nobody knows beforehand which one is good.
func overZones(t Trace, s Setting, make func(zone int) Policy) Figures {
	var sum Figures
	n := len(t.Zones)
	for z := range n {
		f := Run(t, s, make(z))
		sum.Available += f.Available / float64(n)
		sum.Missing += f.Missing / float64(n)
		sum.Cost += f.Cost / float64(n)
		sum.OfBound += f.OfBound / float64(n)
		sum.Moves, sum.Starts, sum.Evictions, sum.Refusals = sum.Moves+f.Moves, sum.Starts+f.Starts, sum.Evictions+f.Evictions, sum.Refusals+f.Refusals
	}
	sum.Moves, sum.Starts, sum.Evictions, sum.Refusals = sum.Moves/n, sum.Starts/n, sum.Evictions/n, sum.Refusals/n
	return sum
}

// LeaveOut runs our policy and SpotHedge with two extra without each zone, and on each third of the days without the others.
func LeaveOut(t Trace, s Setting) []Row {
	var rows []Row
	add := func(part Trace, without string) {
		for _, c := range fleetWide(s) {
			if c.name != Hedge1 {
				rows = append(rows, Row{Trace: t.Name, Without: without, Setting: s, Policy: c.name, Figures: Run(part, s, c.make())})
			}
		}
	}
	for z := range t.Zones {
		if len(t.Zones) > 1 {
			add(t.Without(z), t.Zones[z].Name)
		}
	}
	n := t.Samples()
	for third := range 3 {
		from, to := third*n/3, (third+1)*n/3
		if to > from+1 {
			add(t.Part(from, to), fmt.Sprintf("days outside third %d", third+1))
		}
	}
	return rows
}

// Print writes a table.
func Print(out io.Writer, rows []Row) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := ""
	for i := range rows {
		r := &rows[i]
		now := fmt.Sprintf("%s: %d replicas, start %d s, notice %d s", r.Trace, r.Setting.Replicas, r.Setting.Start, r.Setting.Notice)
		if now != head {
			head = now
			fmt.Fprintf(table, "\n%s\npolicy\twithout\tready\tmissing\tof on-demand\tof bound\tmoves\tstarts\tevictions\trefused\n", now)
		}
		fmt.Fprintf(table, "%s\t%s\t%.3f %%\t%.4f\t%.1f %%\t%.3f\t%d\t%d\t%d\t%d\n",
			r.Policy, r.Without, 100*r.Available, r.Missing, 100*r.Cost, r.OfBound, r.Moves, r.Starts, r.Evictions, r.Refusals)
	}
	_ = table.Flush() // a table that is not read needs no error
}
