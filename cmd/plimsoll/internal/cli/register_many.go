package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

// together is how many members are registered at a time.
const together = 8

// candidate is one of several clusters to register, and what happened to it.
type candidate struct {
	name    string
	member  *enroll.Context
	changed int
	outcome enroll.Outcome
	err     error
	// ready: the hub has said so. late is why it has not, of a member that is registered.
	ready bool
	late  error
}

// many registers several clusters, each from the context of its name, and prints one report. One that fails or takes too long does not
// keep the others from being registered.
func (r *registering) many(c *cobra.Command, names []string) error {
	if r.InCluster {
		return usage(c, errors.New("--in-cluster: give at most one NAME with it"))
	}
	if r.sides.context != "" || r.Server != "" || r.caFile != "" || r.dryRun {
		return usage(c, errors.New("--context, --server, --ca-file and --dry-run: give one NAME with them; of several, each is registered from the context of its name"))
	}
	all, hub, err := r.candidates(c, names)
	if err != nil {
		return err
	}
	followed, err := r.follow(c.Context(), hub, names...)
	if err != nil {
		return err
	}
	defer followed.stop()
	var running sync.WaitGroup
	turns := make(chan struct{}, together)
	for _, one := range all {
		running.Go(func() {
			turns <- struct{}{}
			ctx, cancel := context.WithTimeout(c.Context(), r.timeout)
			defer cancel()
			r.registerOne(ctx, one, hub)
			<-turns // one that does not become ready keeps no other from being registered
			if followed != nil && one.err == nil {
				one.late = followed.ready(ctx, one.name, one.outcome.Version)
				one.ready = one.late == nil
			}
		})
	}
	running.Wait()
	return reportMany(r.env.Out, all)
}

// candidates loads every context before anything is changed. Two contexts of one server would be two members in one cluster.
func (r *registering) candidates(c *cobra.Command, names []string) ([]*candidate, *enroll.Context, error) {
	hub, err := r.sides.hub()
	if err != nil {
		return nil, nil, err
	}
	var all []*candidate
	hosts := map[string]string{}
	for _, name := range names {
		registration := r.Registration
		registration.Name = name
		if err := registration.Validate(); err != nil {
			return nil, nil, usage(c, err)
		}
		member, err := enroll.Load(r.sides.kubeconfig, name)
		if err != nil {
			return nil, nil, fmt.Errorf("member %s: %w", name, err)
		}
		if other := hosts[member.Config.Host]; other != "" {
			return nil, nil, usage(c, fmt.Errorf("%s and %s are the same cluster, %s", other, name, member.Config.Host))
		}
		hosts[member.Config.Host] = name
		all = append(all, &candidate{name: name, member: member})
	}
	return all, hub, nil
}

func (r *registering) registerOne(ctx context.Context, one *candidate, hub *enroll.Context) {
	registration := r.Registration
	registration.Name = one.name
	one.outcome, one.err = enroll.Register(ctx, registration, one.member, hub, func(change enroll.Change) {
		if change.Action == enroll.Created || change.Action == enroll.Updated {
			one.changed++
		}
	})
}

// reportMany prints a row for each member, and fails if one did.
func reportMany(to io.Writer, all []*candidate) error {
	rows := newTable("MEMBER", "RESULT", "CHANGED", "NOTE")
	failed, late := 0, 0
	for _, one := range all {
		result, note := "registered", ""
		if one.ready {
			result = "ready"
		}
		switch {
		case one.err != nil:
			failed++
			result, note = "failed", strings.ReplaceAll(one.err.Error(), "\n", "; ")
		case one.late != nil:
			late++
			result, note = "not ready", strings.ReplaceAll(one.late.Error(), "\n", "; ")
		case len(one.outcome.Warnings) > 0:
			note = "warning: " + strings.Join(one.outcome.Warnings, "; ")
		case one.outcome.Loopback:
			note = "its server is a loopback address: set --server if the hub runs on another machine"
		case !one.outcome.Expires.IsZero():
			note = "the token expires at " + one.outcome.Expires.UTC().Format(time.RFC3339) + "; the hub renews it"
		}
		if warnings := strings.Join(one.outcome.Warnings, "; "); warnings != "" && (one.err != nil || one.late != nil) {
			note += "; warning: " + warnings // what they are about stays so, whatever else went wrong
		}
		rows.add(one.name, result, strconv.Itoa(one.changed), note)
	}
	if err := rows.write(to); err != nil {
		return err
	}
	switch {
	case failed > 0 && late > 0:
		return fmt.Errorf("%d of %d members are not registered, and %d are registered but not ready; it is safe to run the command again", failed, len(all), late)
	case failed > 0:
		return fmt.Errorf("%d of %d members are not registered; it is safe to run the command again", failed, len(all))
	case late > 0:
		return &operationError{fmt.Sprintf("%d of %d members are registered but not ready", late, len(all))}
	}
	return nil
}
