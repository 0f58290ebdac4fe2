package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

func fleetPlacementsCommand(env Environment) *cobra.Command {
	conn, out, asked := connection.New(env.Getenv), output{}, query{}
	var namespace string
	command := &cobra.Command{
		Use:   "fleetplacements",
		Short: "List FleetPlacements: workloads that run over several clusters",
		Long: `List FleetPlacements: workloads that run over several clusters. All namespaces unless -n names one.

SPOT and ON-DEMAND are replicas: running/wanted.`,
		Example: `  # List all FleetPlacements
  plimsoll get fleetplacements

  # List those that have fewer replicas ready than are asked for, and follow them
  plimsoll get fleetplacements --filter 'placement.ready < placement.policy.replicas' --watch`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			if asked.watch {
				stream, err := plimsollv1.NewFleetServiceClient(api).WatchFleetPlacements(api.WithToken(c.Context()), &plimsollv1.WatchFleetPlacementsRequest{
					Namespace: namespace, Filter: asked.filter,
				})
				return watch(stream, err, env, &out, fleetPlacementChange,
					func(m *plimsollv1.WatchFleetPlacementsResponse) string { return fleetPlacementName(m.GetPlacement()) })
			}
			found, err := listFleetPlacements(c.Context(), api, &plimsollv1.ListFleetPlacementsRequest{
				Namespace: namespace, PageSize: pageOf, Filter: asked.filter, OrderBy: asked.orderBy,
			})
			if err != nil {
				return err
			}
			var names []string
			for _, p := range found.GetPlacements() {
				names = append(names, fleetPlacementName(p))
			}
			return out.write(env.Out, found, names, func(to io.Writer) error { return fleetPlacementsTable(to, env, found, out.wide()) })
		},
	}
	flags := command.Flags()
	flags.StringVarP(&namespace, "namespace", "n", "", "only FleetPlacements of this namespace of the hub cluster")
	allNamespaces(command, "FleetPlacements", &namespace)
	complete(command, "namespace", completeFleetNamespaces(conn))
	conn.AddFlags(command)
	out.flags(command)
	asked.flags(command, `placement.ready < placement.policy.replicas`)
	return command
}

// listFleetPlacements reads all pages into one answer.
func listFleetPlacements(ctx context.Context, api *connection.Client, request *plimsollv1.ListFleetPlacementsRequest) (*plimsollv1.ListFleetPlacementsResponse, error) {
	return allPages(ctx, api, func(ctx context.Context, token string) (*plimsollv1.ListFleetPlacementsResponse, error) {
		request.PageToken = token
		return plimsollv1.NewFleetServiceClient(api).ListFleetPlacements(ctx, request)
	})
}

// fleetPlacementName names one in the hub cluster.
func fleetPlacementName(p *plimsollv1.FleetPlacement) string {
	return "fleetplacement/" + p.GetNamespace() + "/" + p.GetName()
}

// running is how many replicas there are of a capacity type, and how many are wanted.
func running(c *plimsollv1.FleetCounts) string { return of(c.GetRunning(), c.GetWanted()) }

// fleetPlacementChange is a FleetPlacement in one line.
func fleetPlacementChange(m *plimsollv1.WatchFleetPlacementsResponse) string {
	p := m.GetPlacement()
	line := fmt.Sprintf("%s/%s  %s  ready %s  spot %s  on-demand %s", p.GetNamespace(), p.GetName(), word(p.GetState(), "FLEET_PLACEMENT_STATE_"),
		of(p.GetReady(), p.GetPolicy().GetReplicas()), running(p.GetSpot()), running(p.GetOnDemand()))
	for _, member := range p.GetMembers() {
		line += fmt.Sprintf("  %s %d+%d", member.GetName(), member.GetSpot().GetReady(), member.GetOnDemand().GetReady())
	}
	return plain(line)
}

func fleetPlacementsTable(to io.Writer, env Environment, all *plimsollv1.ListFleetPlacementsResponse, wide bool) error {
	if len(all.GetPlacements()) == 0 {
		fmt.Fprintln(env.Err, "There are no FleetPlacements, or none that you may see.")
		return nil
	}
	rows := newTable(columns(wide, []string{"NAMESPACE", "NAME", "TARGET", "READY", "SPOT", "ON-DEMAND", "MEMBERS", "STATE", "REASON", "AGE"},
		"MIN-ON-DEMAND", "SPOT-PERCENTAGE", "INSURANCE", "UNPLACED", "SPOT-ON-DEMAND-BY-MEMBER")...)
	for _, p := range all.GetPlacements() {
		var by []string
		for _, m := range p.GetMembers() {
			by = append(by, fmt.Sprintf("%s:%d+%d", m.GetName(), m.GetSpot().GetRunning(), m.GetOnDemand().GetRunning()))
		}
		row := []string{p.GetNamespace(), p.GetName(), strings.ToLower(p.GetTarget().GetKind()) + "/" + p.GetTarget().GetName(),
			of(p.GetReady(), p.GetPolicy().GetReplicas()), running(p.GetSpot()), running(p.GetOnDemand()), fmt.Sprint(int32(len(by)) + p.GetHiddenMembers()),
			word(p.GetState(), "FLEET_PLACEMENT_STATE_"), p.GetReason(), age(p.GetCreatedAt(), env.Now())}
		rows.add(columns(wide, row, fmt.Sprint(p.GetPolicy().GetMinOnDemand()), fmt.Sprint(p.GetPolicy().GetSpotPercentage()),
			fmt.Sprint(p.GetInsurance()), fmt.Sprint(p.GetUnplaced()), strings.Join(by, " "))...)
	}
	return rows.write(to)
}
