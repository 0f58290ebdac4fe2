package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

func whatIfCommand(env Environment) *cobra.Command {
	conn, out := connection.New(env.Getenv), output{}
	var supposed supposition
	var overFleet fleetSupposition
	var namespace string
	command := &cobra.Command{
		Use:   "what-if {" + workloadUse + " | fleetplacement/NAME}",
		Short: "Show what another policy would change, without changing anything",
		Long: `Show the plan of a workload or FleetPlacement under another policy, computed from the data of its last plan. It changes nothing.

Values without a flag stay as they are.` + workloadLong,
		Example: `  # More spot capacity, with two replicas on-demand at least
  plimsoll what-if prod-eu deployment/cart -n shop --spot-percentage 80 --min-on-demand 2

  # A FleetPlacement with a higher floor, in Europe before America
  plimsoll what-if fleetplacement/web -n shop --min-on-demand 6 --tier region=eu --tier region=us`,
		Args:              workloadOrFleetPlacement,
		ValidArgsFunction: completeWorkloadOrFleetPlacement(conn, &namespace),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkFlags(c.Flags(), namesFleetPlacement(args)); err != nil {
				return usage(c, err)
			}
			if namesFleetPlacement(args) {
				key, err := parseFleetPlacement(args[0], namespace)
				if err != nil {
					return usage(c, err)
				}
				return supposeFleetPlacement(c.Context(), env, conn, &out, key, &overFleet, &supposed, c.Flags())
			}
			key, err := parseWorkloadArguments(args, namespace)
			if err != nil {
				return usage(c, err)
			}
			request, err := supposed.request(key, c.Flags())
			if err != nil {
				return usage(c, err)
			}
			return supposeWorkload(c.Context(), env, conn, &out, request)
		},
	}
	workloadNamespace(command, &namespace)
	complete(command, "namespace", completeNamespaces(conn))
	supposed.flags(command.Flags())
	complete(command, "strategy", cobra.FixedCompletions([]cobra.Completion{"evict", "release"}, cobra.ShellCompDirectiveNoFileComp))
	overFleet.flags(command.Flags())
	conn.AddFlags(command)
	out.flags(command)
	return command
}

// supposeWorkload asks for the plan of a workload under another policy, and shows it beside the one that it has.
func supposeWorkload(ctx context.Context, env Environment, conn *connection.Options, out *output, request *plimsollv1.WhatIfRequest) error {
	api, err := conn.Open(ctx)
	if err != nil {
		return err
	}
	defer api.Close()
	call, cancel := api.CallContext(ctx, 0)
	defer cancel()
	answer, err := plimsollv1.NewWorkloadServiceClient(api).WhatIf(call, request)
	if err != nil {
		return err
	}
	warn(env.Err, answer.GetUnreachable())
	return out.write(env.Out, answer, []string{workloadName(answer.GetNow())}, func(to io.Writer) error { return comparison(to, env.Now(), answer) })
}

// supposition is what the flags say.
type supposition struct {
	percentage, floor, replicas int32
	strategy                    string
	ignoreWindow                bool
}

func (s *supposition) flags(flags *pflag.FlagSet) {
	flags.Int32Var(&s.percentage, "spot-percentage", 0, "percentage of the replicas on spot capacity, 0 to 100")
	flags.Int32Var(&s.floor, "min-on-demand", 0, "floor of on-demand replicas, 0 to 10000")
	flags.Int32Var(&s.replicas, "replicas", 0, "number of replicas")
	flags.StringVar(&s.strategy, "strategy", "", "how replicas are moved: evict or release")
	flags.BoolVar(&s.ignoreWindow, "ignore-window", false, "plan as if the disruption window were open")
}

func (s *supposition) request(key workloadKey, flags *pflag.FlagSet) (*plimsollv1.WhatIfRequest, error) {
	request := &plimsollv1.WhatIfRequest{
		Cluster: key.cluster, Namespace: key.namespace, Kind: key.kind, Name: key.name, IgnoreWindow: s.ignoreWindow,
	}
	set := func(into **int32, flag string, value *int32) {
		if flags.Changed(flag) {
			*into = value
		}
	}
	set(&request.SpotPercentage, "spot-percentage", &s.percentage)
	set(&request.MinOnDemand, "min-on-demand", &s.floor)
	set(&request.Replicas, "replicas", &s.replicas)
	switch s.strategy {
	case "":
	case "evict":
		request.Strategy = plimsollv1.MoveStrategy_MOVE_STRATEGY_EVICT
	case "release":
		request.Strategy = plimsollv1.MoveStrategy_MOVE_STRATEGY_RELEASE
	default:
		return nil, fmt.Errorf("--strategy %q: must be evict or release", s.strategy)
	}
	if request.SpotPercentage == nil && request.MinOnDemand == nil && request.Replicas == nil && s.strategy == "" && !s.ignoreWindow {
		return nil, errors.New("nothing to plan: set at least one of --spot-percentage, --min-on-demand, --replicas, --strategy and --ignore-window")
	}
	return request, nil
}

func comparison(to io.Writer, now time.Time, answer *plimsollv1.WhatIfResponse) error {
	is, would := answer.GetNow(), answer.GetThen()
	rows := newTable("", "NOW", "THEN")
	both := func(name string, of func(*plimsollv1.Workload) string) { rows.add(name, of(is), of(would)) }
	both("State", func(w *plimsollv1.Workload) string { return word(w.GetState(), "WORKLOAD_STATE_") })
	both("Replicas", func(w *plimsollv1.Workload) string { return fmt.Sprint(w.GetPlacement().GetReplicas()) })
	both("Spot percentage", func(w *plimsollv1.Workload) string {
		return policyValue(w.GetPlacement().SpotPercentage, w.GetPlacement().GetSpotPercentageSource())
	})
	both("Minimum on-demand", func(w *plimsollv1.Workload) string {
		return policyValue(w.GetPlacement().MinOnDemand, w.GetPlacement().GetMinOnDemandSource())
	})
	both("Spot", func(w *plimsollv1.Workload) string {
		return of(w.GetPlacement().GetSpotActual(), w.GetPlacement().GetSpotWanted())
	})
	both("On-demand", func(w *plimsollv1.Workload) string {
		return of(w.GetPlacement().GetOnDemandActual(), w.GetPlacement().GetOnDemandWanted())
	})
	if err := rows.write(to); err != nil {
		return err
	}
	fmt.Fprintf(to, "\nReplicas to move: %d\n", answer.GetMoves())
	for _, line := range would.GetExplanation() {
		fmt.Fprintf(to, "  %s\n", plain(line))
	}
	if err := waitsPart(to, now, would); err != nil {
		return err
	}
	return moveTable(to, now, "FIRST MOVES", answer.GetFirstMoves())
}
