package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

// pageOf is how many items are asked for at once.
const pageOf = 500

func clustersCommand(env Environment) *cobra.Command {
	conn, out, asked := connection.New(env.Getenv), output{}, query{}
	command := &cobra.Command{
		Use:     "clusters [NAME...]",
		Aliases: []string{"members"},
		Short:   "List clusters with their state, owner, and replicas by capacity type",
		Long: `List the clusters that you may see, or those that you name.

SPOT and ON-DEMAND count the replicas of all managed workloads: actual/wanted.`,
		Example: `  # List all clusters
  plimsoll get clusters

  # List the clusters that are not ready, and follow what changes
  plimsoll get clusters --filter 'cluster.state != "READY"' --watch

  # Print the names and versions
  plimsoll get clusters -o jsonpath='{range .clusters[*]}{.name} {.kubernetesVersion}{"\n"}{end}'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && asked != (query{}) {
				return usage(c, errors.New("NAME and --filter, --order-by or --watch: give one of them"))
			}
			return nil
		},
		ValidArgsFunction: completeClusters(conn),
		RunE: func(c *cobra.Command, names []string) error {
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			if asked.watch {
				stream, err := plimsollv1.NewClusterServiceClient(api).WatchClusters(api.WithToken(c.Context()), &plimsollv1.WatchClustersRequest{Filter: asked.filter})
				return watch(stream, err, env, &out, clusterChange, func(m *plimsollv1.WatchClustersResponse) string { return "cluster/" + m.GetCluster().GetName() })
			}
			all, err := namedClusters(c.Context(), api, &asked, names)
			if err != nil {
				return err
			}
			warn(env.Err, all.GetUnreachable())
			return out.write(env.Out, all, clusterNames(all), func(to io.Writer) error { return clustersTable(to, env, all, out.wide()) })
		},
	}
	conn.AddFlags(command)
	out.flags(command)
	asked.flags(command, `cluster.state != "READY"`)
	return command
}

// clusterChange is a cluster in one line.
func clusterChange(m *plimsollv1.WatchClustersResponse) string {
	return fmt.Sprintf("%s  %s  %s", m.GetCluster().GetName(), word(m.GetCluster().GetState(), "CLUSTER_STATE_"), m.GetCluster().GetReason())
}

// listClusters reads all pages into one answer.
func listClusters(ctx context.Context, api *connection.Client, asked *query) (*plimsollv1.ListClustersResponse, error) {
	return allPages(ctx, api, func(ctx context.Context, token string) (*plimsollv1.ListClustersResponse, error) {
		return plimsollv1.NewClusterServiceClient(api).ListClusters(ctx, &plimsollv1.ListClustersRequest{
			PageSize: pageOf, PageToken: token, Filter: asked.filter, OrderBy: asked.orderBy,
		})
	})
}

// namedClusters are the clusters with these names as a list, or all that are asked for.
func namedClusters(ctx context.Context, api *connection.Client, asked *query, names []string) (*plimsollv1.ListClustersResponse, error) {
	if len(names) == 0 {
		return listClusters(ctx, api, asked)
	}
	all := &plimsollv1.ListClustersResponse{}
	for _, name := range names {
		found, err := getCluster(ctx, api, name)
		if err != nil {
			return nil, err
		}
		all.Clusters = append(all.Clusters, found.GetCluster())
		all.Unreachable = append(all.Unreachable, found.GetUnreachable()...)
		all.AsOf = oldest(all.AsOf, found.GetAsOf())
	}
	return all, nil
}

func clusterNames(all *plimsollv1.ListClustersResponse) []string {
	names := make([]string, 0, len(all.GetClusters()))
	for _, c := range all.GetClusters() {
		names = append(names, "cluster/"+c.GetName())
	}
	return names
}

func clustersTable(to io.Writer, env Environment, all *plimsollv1.ListClustersResponse, wide bool) error {
	if len(all.GetClusters()) == 0 {
		fmt.Fprintln(env.Err, "No clusters are registered, or none that you may see.")
		return nil
	}
	rows := newTable(columns(wide, []string{"NAME", "STATE", "REASON", "VERSION", "OWNER", "SPOT", "ON-DEMAND", "AGE"}, "WORKLOADS", "SERVER", "LAST-PROBE", "MESSAGE")...)
	for _, c := range all.GetClusters() {
		spot, onDemand := none, none
		if n := c.GetWorkloads(); n != nil {
			spot, onDemand = of(n.GetSpotActual(), n.GetSpotWanted()), of(n.GetOnDemandActual(), n.GetOnDemandWanted())
		}
		row := []string{c.GetName(), clusterState(c), c.GetReason(), c.GetKubernetesVersion(), c.GetOwner(),
			spot, onDemand, age(c.GetRegisteredAt(), env.Now())}
		rows.add(columns(wide, row, fmt.Sprint(c.GetWorkloads().GetManaged()), c.GetServer(), age(c.GetLastProbeAt(), env.Now()), c.GetMessage())...)
	}
	return rows.write(to)
}

// clusterState is the state of a cluster with what a person switched on there, such as "Ready,Paused".
func clusterState(c *plimsollv1.Cluster) string {
	state := word(c.GetState(), "CLUSTER_STATE_")
	for _, is := range c.GetConditions() {
		if slices.Contains(chosen, is.GetType()) && is.GetStatus() == "True" {
			state += "," + is.GetType()
		}
	}
	return state
}

// oldest returns the earlier of two moments; nil is none.
func oldest(a, b *timestamppb.Timestamp) *timestamppb.Timestamp {
	if a == nil || b != nil && b.AsTime().Before(a.AsTime()) {
		return b
	}
	return a
}
