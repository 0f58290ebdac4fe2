package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

// recently is how far back top looks at reconciles.
const recently = time.Minute

// topFilter matches what is failing and what ran recently, which is little beside what is idle.
const topFilter = `object.last_outcome in ["ERROR", "TERMINAL", "PANIC", "TIMEOUT"] || object.last_finished_at > now - duration("1m")`

func topCommand(env Environment) *cobra.Command {
	conn := connection.New(env.Getenv)
	var live bool
	var interval time.Duration
	command := &cobra.Command{
		Use:   "top",
		Short: "Show the load of each cluster: queue, errors, and latency",
		Long: `Show the load of each cluster, the busiest first: objects, those that are queued, running, held, and failing, and the reconciles of the
last minute with their median and maximum duration.`,
		Example: `  # Show the load once
  plimsoll top

  # Refresh every two seconds
  plimsoll top --watch`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if interval < time.Second {
				return usage(c, fmt.Errorf("--interval %s: must be at least 1s", interval))
			}
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			if !live {
				return top(c.Context(), api, env)
			}
			return topLive(c.Context(), api, env, interval)
		},
	}
	command.Flags().BoolVarP(&live, "watch", "w", false, "refresh until interrupted")
	command.Flags().DurationVar(&interval, "interval", 2*time.Second, "time between two refreshes with --watch")
	conn.AddFlags(command)
	return command
}

// topLive refreshes until it is interrupted. A terminal is cleared each time, when there is something new to show; anything else gets one table
// after the other. Once something was shown, a hub that does not answer for a while ends nothing.
func topLive(ctx context.Context, api *connection.Client, env Environment, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for began := false; ; {
		var shown, warned bytes.Buffer
		err := top(ctx, api, Environment{Out: &shown, Err: &warned, Getenv: env.Getenv, Now: env.Now})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (!began || !isTransient(err)):
			return err
		case err != nil:
			_, text, _ := judge(err)
			fmt.Fprintf(env.Err, "warning: %s\n", text)
		default:
			began = true
			if file, ok := env.Out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
				fmt.Fprint(env.Out, "\x1b[H\x1b[2J")
			}
			fmt.Fprintln(env.Out, shown.String())
			fmt.Fprint(env.Err, warned.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// isTransient reports whether an error may be gone the next time.
func isTransient(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted:
		return true
	}
	return false
}

func top(ctx context.Context, api *connection.Client, env Environment) error {
	members, err := listClusters(ctx, api, &query{})
	if err != nil {
		return err
	}
	controllers, err := listControllers(ctx, api, "")
	if err != nil {
		return err
	}
	objects, err := listObjects(ctx, api, &plimsollv1.ListObjectsRequest{Filter: topFilter})
	if err != nil {
		return err
	}
	warn(env.Err, unreachableOf(members, controllers, objects))
	return loadTable(env.Out, loads(members.GetClusters(), controllers.GetControllers(), objects.GetObjects(), env.Now()))
}

// unreachableOf are the members that some of the answers lack, each once.
func unreachableOf(answers ...interface {
	GetUnreachable() []*plimsollv1.UnreachableMember
}) (missing []*plimsollv1.UnreachableMember) {
	named := map[string]bool{}
	for _, answer := range answers {
		for _, u := range answer.GetUnreachable() {
			if !named[u.GetMember()] {
				named[u.GetMember()] = true
				missing = append(missing, u)
			}
		}
	}
	return missing
}

// load is what the controllers have to do in one member.
type load struct {
	member                                       *plimsollv1.Cluster
	objects, queued, running, failing, attempted int
	held                                         string
	took                                         []time.Duration // of the reconciles that ended recently, the shortest first
}

// loads sums up what was listed, the busiest member first.
func loads(members []*plimsollv1.Cluster, controllers []*plimsollv1.Controller, objects []*plimsollv1.ObjectState, now time.Time) []*load {
	all := make([]*load, 0, len(members))
	of := map[string]*load{}
	for _, m := range members {
		one := &load{member: m}
		all, of[m.GetName()] = append(all, one), one
	}
	for _, c := range controllers {
		if one := of[c.GetCluster()]; one != nil {
			one.objects += int(c.GetObjects())
			one.queued += int(c.GetQueued())
			one.running += int(c.GetRunning())
			one.held = cmp.Or(one.held, c.GetHeld())
		}
	}
	for _, o := range objects {
		if one := of[o.GetKey().GetCluster()]; one != nil {
			one.count(o, now)
		}
	}
	for _, one := range all {
		slices.Sort(one.took)
	}
	slices.SortStableFunc(all, func(a, b *load) int {
		return cmp.Or(cmp.Compare(b.failing, a.failing), cmp.Compare(b.queued, a.queued), cmp.Compare(b.running, a.running),
			cmp.Compare(a.member.GetName(), b.member.GetName()))
	})
	return all
}

func (l *load) count(o *plimsollv1.ObjectState, now time.Time) {
	switch o.GetLastOutcome() {
	case plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_ERROR, plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_TERMINAL,
		plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_PANIC, plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_TIMEOUT:
		l.failing++
		l.attempted = max(l.attempted, int(o.GetAttempts()))
	}
	if took, ok := tookOf(o); ok && now.Sub(o.GetLastFinishedAt().AsTime()) <= recently {
		l.took = append(l.took, took)
	}
}

func loadTable(to io.Writer, all []*load) error {
	rows := newTable("CLUSTER", "STATE", "OBJECTS", "QUEUED", "RUNNING", "FAILING", "MOST-ATTEMPTS", "ENDED-1M", "MEDIAN", "LONGEST", "HELD")
	for _, l := range all {
		median, longest := none, none
		if n := len(l.took); n > 0 {
			median, longest = l.took[n/2].String(), l.took[n-1].String()
		}
		rows.add(l.member.GetName(), word(l.member.GetState(), "CLUSTER_STATE_"), fmt.Sprint(l.objects), fmt.Sprint(l.queued), fmt.Sprint(l.running),
			fmt.Sprint(l.failing), fmt.Sprint(l.attempted), fmt.Sprint(len(l.took)), median, longest, l.held)
	}
	return rows.write(to)
}
