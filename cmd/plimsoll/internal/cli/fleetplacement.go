package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/util/duration"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

// fleetPlacementKinds are how a FleetPlacement is named, as kubectl takes it.
var fleetPlacementKinds = []string{"fleetplacement", "fleetplacements", "fp", "fleetplacement.fleet.plimsoll.dev", "fleetplacements.fleet.plimsoll.dev"}

// fleetKey names a FleetPlacement.
type fleetKey struct{ namespace, name string }

// namesFleetPlacement reports whether arguments are fleetplacement/NAME and not a workload, whose first one is a cluster.
func namesFleetPlacement(args []string) bool {
	if len(args) == 0 {
		return false
	}
	kind, _, found := strings.Cut(args[0], "/")
	return found && slices.Contains(fleetPlacementKinds, strings.ToLower(kind))
}

// parseFleetPlacement reads [fleetplacement/]NAME in the namespace of -n.
func parseFleetPlacement(text, namespace string) (fleetKey, error) {
	name := text
	if namesFleetPlacement([]string{text}) {
		_, name, _ = strings.Cut(text, "/")
	}
	if in, rest, found := strings.Cut(name, "/"); found {
		if namespace != "" && in != namespace {
			return fleetKey{}, fmt.Errorf("%q: -n says %q: give one namespace", text, namespace)
		}
		namespace, name = in, rest
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return fleetKey{}, fmt.Errorf("%q: must be fleetplacement/NAME with its namespace in -n", text)
	}
	return fleetKey{namespace, name}, nil
}

// workloadOrFleetPlacement takes what workloadArguments does, or fleetplacement/NAME.
func workloadOrFleetPlacement(c *cobra.Command, args []string) error {
	if namesFleetPlacement(args) {
		return exactly("fleetplacement/NAME")(c, args)
	}
	return workloadArguments(c, args)
}

func fleetPlacementCommand(env Environment) *cobra.Command {
	conn, out := connection.New(env.Getenv), output{}
	var namespace string
	command := &cobra.Command{
		Use:   "fleetplacement NAME",
		Short: "Show one FleetPlacement with its members and last moves",
		Long:  "Show one FleetPlacement: what is asked for, what each member has and why, and the last moves.",
		Example: `  # Describe a FleetPlacement
  plimsoll describe fleetplacement web -n shop`,
		Args:              exactly("NAME"),
		ValidArgsFunction: completeFleetPlacement(conn, &namespace, ""),
		RunE: func(c *cobra.Command, args []string) error {
			key, err := parseFleetPlacement(args[0], namespace)
			if err != nil {
				return usage(c, err)
			}
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			call, cancel := api.CallContext(c.Context(), 0)
			defer cancel()
			found, err := plimsollv1.NewFleetServiceClient(api).GetFleetPlacement(call, &plimsollv1.GetFleetPlacementRequest{Namespace: key.namespace, Name: key.name})
			if err != nil {
				return err
			}
			return out.write(env.Out, found, []string{fleetPlacementName(found.GetPlacement())}, func(to io.Writer) error {
				return fleetPlacementDetails(to, env.Now(), found.GetPlacement())
			})
		},
	}
	fleetPlacementNamespace(command, &namespace)
	complete(command, "namespace", completeFleetNamespaces(conn))
	conn.AddFlags(command)
	out.flags(command)
	return command
}

func fleetPlacementNamespace(command *cobra.Command, into *string) {
	command.Flags().StringVarP(into, "namespace", "n", "", "namespace of the FleetPlacement in the hub cluster")
}

// completeFleetPlacement completes the only argument of a command: the name of a FleetPlacement, with a prefix before it.
func completeFleetPlacement(conn *connection.Options, namespace *string, prefix string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return live(c, conn, func(ctx context.Context, api *connection.Client) ([]string, error) {
			all, err := listFleetPlacements(ctx, api, &plimsollv1.ListFleetPlacementsRequest{Namespace: *namespace, PageSize: pageOf})
			if err != nil {
				return nil, err
			}
			var names []string
			for _, p := range all.GetPlacements() {
				name := prefix + p.GetName()
				if *namespace == "" {
					name = prefix + p.GetNamespace() + "/" + p.GetName()
				}
				if strings.HasPrefix(name, start) {
					names = append(names, name)
				}
			}
			return names, nil
		})
	}
}

// completeWorkloadOrFleetPlacement completes what workloadOrFleetPlacement takes.
func completeWorkloadOrFleetPlacement(conn *connection.Options, namespace *string) cobra.CompletionFunc {
	workloads, placements := completeWorkloads(conn, namespace), completeFleetPlacement(conn, namespace, "fleetplacement/")
	return func(c *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if namesFleetPlacement(args) || strings.HasPrefix(start, "fleetplacement") {
			return placements(c, args, start)
		}
		return workloads(c, args, start)
	}
}

func fleetPlacementDetails(to io.Writer, now time.Time, p *plimsollv1.FleetPlacement) error {
	policy := p.GetPolicy()
	facts := newTable("FLEETPLACEMENT", p.GetNamespace()+"/"+p.GetName())
	facts.add("Target", strings.ToLower(p.GetTarget().GetKind())+"/"+p.GetTarget().GetName())
	facts.add("State", word(p.GetState(), "FLEET_PLACEMENT_STATE_")+": "+p.GetMessage())
	facts.add("Ready", of(p.GetReady(), policy.GetReplicas()))
	facts.add("Spot", fmt.Sprintf("%s, up to %d %% and %d more", running(p.GetSpot()), policy.GetSpotPercentage(), policy.GetExtraSpot()))
	facts.add("On-demand", fmt.Sprintf("%s, at least %d", running(p.GetOnDemand()), policy.GetMinOnDemand()))
	if n := p.GetUnplaced(); n > 0 {
		facts.add("Without a place", fmt.Sprint(n))
	}
	for _, c := range p.GetConditions() {
		if c.GetType() == "Feasible" && c.GetStatus() == "False" {
			facts.add("Not feasible", c.GetReason()+": "+c.GetMessage())
		}
	}
	if n := p.GetHiddenMembers(); n > 0 {
		facts.add("Members not shown", fmt.Sprintf("%d, which you may not see", n))
	}
	if err := facts.write(to); err != nil {
		return err
	}
	if len(p.GetMembers()) > 0 {
		fmt.Fprintln(to)
		members := newTable("MEMBER", "TIER", "STATE", "SPOT", "ON-DEMAND", "READY", "REASON")
		for _, m := range p.GetMembers() {
			members.add(m.GetName(), fmt.Sprint(m.GetTier()), word(m.GetState(), "FLEET_MEMBER_STATE_"), running(m.GetSpot()), running(m.GetOnDemand()),
				fmt.Sprint(m.GetSpot().GetReady()+m.GetOnDemand().GetReady()), m.GetReason())
		}
		if err := members.write(to); err != nil {
			return err
		}
	}
	return fleetMoves(to, now, "LAST MOVES", p.GetLastMoves())
}

// fleetMoves writes moves, if there are any.
func fleetMoves(to io.Writer, now time.Time, title string, moves []*plimsollv1.FleetMove) error {
	if len(moves) == 0 {
		return nil
	}
	fmt.Fprintf(to, "\n%s\n", title)
	rows := newTable("WHEN", "MEMBER", "CAPACITY", "BY", "WHY")
	for _, m := range moves {
		rows.add(age(m.GetMovedAt(), now), m.GetMember(), capacity(m.GetCapacity()), fmt.Sprintf("%+d", m.GetBy()), m.GetReason())
	}
	return rows.write(to)
}

// explainFleetPlacement asks why, and writes the answer.
func explainFleetPlacement(ctx context.Context, env Environment, conn *connection.Options, out *output, key fleetKey) error {
	api, err := conn.Open(ctx)
	if err != nil {
		return err
	}
	defer api.Close()
	call, cancel := api.CallContext(ctx, 0)
	defer cancel()
	why, err := plimsollv1.NewFleetServiceClient(api).ExplainFleetPlacement(call, &plimsollv1.ExplainFleetPlacementRequest{Namespace: key.namespace, Name: key.name})
	if err != nil {
		return err
	}
	return out.write(env.Out, why, []string{fleetPlacementName(why.GetPlacement())}, func(to io.Writer) error {
		return fleetExplanation(to, env.Now(), why)
	})
}

func fleetExplanation(to io.Writer, now time.Time, why *plimsollv1.ExplainFleetPlacementResponse) error {
	fmt.Fprintf(to, "FleetPlacement %s/%s: %s\n", plain(why.GetPlacement().GetNamespace()), plain(why.GetPlacement().GetName()),
		word(why.GetPlacement().GetState(), "FLEET_PLACEMENT_STATE_"))
	for _, line := range why.GetSummary() {
		fmt.Fprintf(to, "  %s\n", plain(line))
	}
	for _, m := range why.GetMembers() {
		fmt.Fprintf(to, "\n%s: %s\n", plain(m.GetName()), plain(m.GetWhyMember()))
		for _, line := range []string{m.GetWhySpot(), m.GetWhyOnDemand(), supplyLine("spot", m.GetSpot(), now), supplyLine("on-demand", m.GetOnDemand(), now)} {
			if line != "" {
				fmt.Fprintf(to, "  %s\n", plain(line))
			}
		}
		for _, o := range m.GetWouldChange() {
			fmt.Fprintf(to, "  in the way: %s; %s, and it would have %d on spot and %d on on-demand\n", plain(o.GetObstacle()), plain(o.GetChange()), o.GetSpot(), o.GetOnDemand())
		}
	}
	if n := why.GetPlacement().GetHiddenMembers(); n > 0 {
		fmt.Fprintf(to, "\n%d more members that you may not see\n", n)
	}
	if err := fleetMoves(to, now, "MOVES NOW", why.GetMoves()); err != nil {
		return err
	}
	return fleetMoves(to, now, "MOVES THAT WAIT", why.GetLater())
}

// supplyLine is what is known about a supply, in one line; "": nothing that says anything.
func supplyLine(what string, s *plimsollv1.FleetSupply, now time.Time) string {
	var said []string
	if at := s.GetDrySince(); at != nil {
		said = append(said, "no room for "+age(at, now))
	}
	if at := s.GetTryAt(); at != nil {
		said = append(said, "may be tried "+until(at, now))
	}
	if s.GetPrice() > 0 {
		said = append(said, fmt.Sprintf("a replica costs %g", s.GetPrice()))
	}
	if d := s.GetLife(); d != nil {
		said = append(said, "predicted to hold for "+span(d))
	}
	if len(said) == 0 {
		return ""
	}
	return what + ": " + strings.Join(said, ", ")
}

func span(d *durationpb.Duration) string { return duration.HumanDuration(d.AsDuration()) }

func until(at *timestamppb.Timestamp, now time.Time) string {
	if left := at.AsTime().Sub(now); left > 0 {
		return "in " + duration.HumanDuration(left)
	}
	return "now"
}

// errNoFleetFlag is a flag that is about workloads of one cluster, or about FleetPlacements, and was given for the other.
func errNoFleetFlag(flag, about string) error { return errors.New("--" + flag + ": is for " + about) }
