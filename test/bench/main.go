package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/bench/internal/bare"
	"github.com/plimsoll-dev/plimsoll/test/bench/internal/inprocess"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// runTimeout bounds each run, so that one that hangs ends as broken. The longest one, hostile, takes five minutes more for each hostility
// that looked too bad once, and so half an hour or longer.
const runTimeout = 75 * time.Minute

// A run measures one thing.
type run struct {
	name string
	// needs are the settings of the hub that it runs with; nil: it starts its own replicas.
	needs fleet.Settings
	do    func(*bench, context.Context) error
	// alone: it needs no cluster, and is done before they start.
	alone bool
}

// byDefault are the settings of a user who sets nothing.
var byDefault = fleet.Settings{}

// runs in their order. Those that want the hub as it is by default share one, so that memory is measured after bursts.
var runs = []run{
	{name: "framework", do: inProcess(inprocess.Framework), alone: true},
	{name: "ledger", do: inProcess(inprocess.Ledger), alone: true},
	{name: "api", do: inProcess(inprocess.API), alone: true},
	{name: "large", do: inProcess(inprocess.Large), alone: true},
	{name: "fleet-plan", do: inProcess(inprocess.FleetPlan), alone: true},
	{name: "image", do: (*bench).image, alone: true},
	{name: "gitops", do: (*bench).gitops, alone: true},
	{name: "e2e", do: (*bench).e2eFailover, alone: true},
	{name: "karpenter-flap", do: (*bench).karpenterFlap, alone: true},
	{name: "karpenter-consolidation", do: (*bench).karpenterConsolidation, alone: true},
	{name: "karpenter-interruption", do: (*bench).karpenterInterruption, alone: true},
	{name: "members", do: (*bench).manyAtOnce, alone: true},
	{name: "burst", needs: byDefault, do: (*bench).burst},
	{name: "scale", needs: byDefault, do: (*bench).scale},
	{name: "memory", needs: byDefault, do: (*bench).memory},
	{name: "policy", needs: byDefault, do: (*bench).policy},
	{name: "churn", needs: byDefault, do: (*bench).churn},
	{name: "drought", needs: byDefault, do: (*bench).drought},
	{name: "interruption", needs: byDefault, do: (*bench).interruption},
	{name: "idle", needs: byDefault, do: (*bench).idle},
	{name: "escapes", needs: byDefault, do: (*bench).escapes},
	{name: "page", needs: byDefault, do: (*bench).page},
	{name: "fleet", do: (*bench).fleetRun},
	{name: "bigburst", do: (*bench).bigBurst},
	{name: "mass", do: (*bench).massMoves},
	{name: "webapp", do: (*bench).webApps},
	{name: "hostile", do: (*bench).hostile},
	{name: "events", do: (*bench).events},
	{name: "failover", do: (*bench).failover},
	{name: "handover", do: (*bench).handover},
	{name: "admission", do: (*bench).admission},
}

// partners are what this program does in a process of its own.
var partners = map[string]func(in io.Reader, out io.Writer) error{
	bare.HandlerCommand: bare.Serve, bare.WatchCommand: bare.Receive, loadCommand: sendLoad, inprocess.CallCommand: inprocess.Call,
}

func main() {
	if len(os.Args) == 2 && partners[os.Args[1]] != nil {
		if err := partners[os.Args[1]](os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	selected := flag.String("run", "", "comma-separated runs, default all: "+names(runs))
	out := flag.String("out", filepath.Join("build", "bench.json"), "file for the figures")
	keep := flag.Bool("logs", false, "print where the hub's logs and the clusters' logs are kept, and keep them")
	b := newBench()
	flag.IntVar(&b.members, "members", b.members, "number of members that the run members simulates; the goals apply to the default")
	hostilities := flag.String("hostilities", "", "comma-separated parts of the run hostile, default all: the ways in which its member is hostile, and "+partLogins)
	flag.Parse()
	chosen, err := choose(*selected)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		b.hostilities = strings.FieldsFunc(*hostilities, func(r rune) bool { return r == ',' })
		err = b.measure(ctx, chosen, *out, *keep)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func names(of []run) string {
	list := make([]string, len(of))
	for i, r := range of {
		list[i] = r.name
	}
	return strings.Join(list, ",")
}

// choose picks the runs that are named. Memory means nothing without what comes before it.
func choose(list string) ([]run, error) {
	if list == "" {
		return runs, nil
	}
	wanted := strings.Split(list, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(runs, func(r run) bool { return r.name == name }) {
			return nil, fmt.Errorf("run %q: want one or more of %s", name, names(runs))
		}
	}
	if slices.Contains(wanted, "memory") {
		wanted = append(wanted, "burst", "scale")
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return !slices.Contains(wanted, r.name) }), nil
}

// measure does the runs, of hostile only the parts that are named if any are. One that breaks does not keep the others from being measured.
// The error names the runs that broke and the targets that were missed; logs are kept for the former.
func (b *bench) measure(ctx context.Context, chosen []run, out string, keep bool) (err error) {
	defer func() { err = errors.Join(err, b.close(keep || err != nil), b.report.Missed()) }()
	var problems []error
	for _, r := range chosen {
		if ctx.Err() != nil {
			break
		}
		b.logf("run %s", r.name)
		if err := b.perform(ctx, r); err != nil {
			b.logf("run %s failed: %v", r.name, err)
			problems = append(problems, fmt.Errorf("run %s: %w", r.name, err))
		}
	}
	problems = append(problems, b.report.Write(out), b.report.Print(os.Stdout), ctx.Err())
	return errors.Join(problems...)
}
