package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// pageOf is how many items are asked for at once.
const pageOf = 500

func clustersCommand(env Environment) *cobra.Command {
	conn, out, asked := connection{env: env}, output{}, query{}
	command := &cobra.Command{
		Use:     "clusters",
		Aliases: []string{"members"},
		Short:   "List the members: their state, owner and replicas by capacity",
		Long: `List the members that you may see.

SPOT and ON-DEMAND count the replicas of all managed workloads: those that are there, and those that should be.`,
		Example: `  plimsoll clusters --api hub.example:9090 --token-file token
  plimsoll clusters -o json`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := conn.open(c.Context())
			if err != nil {
				return err
			}
			defer api.close()
			if asked.watch {
				stream, err := plimsollv1.NewClusterServiceClient(api).WatchClusters(api.named(c.Context()), &plimsollv1.WatchClustersRequest{Filter: asked.filter})
				return watch(stream, err, env, &out, func(m *plimsollv1.WatchClustersResponse) string {
					return fmt.Sprintf("%s  %s  %s", m.GetCluster().GetName(), word(m.GetCluster().GetState(), "CLUSTER_STATE_"), m.GetCluster().GetReason())
				})
			}
			all, err := listClusters(c.Context(), api, &asked)
			if err != nil {
				return err
			}
			warn(env.Err, all.GetUnreachable())
			return out.write(env.Out, all, func(to io.Writer) error { return clustersTable(to, env, all) })
		},
	}
	conn.flags(command)
	out.flags(command)
	asked.flags(command, `cluster.state != "READY"`)
	return command
}

// listClusters reads all pages into one answer.
func listClusters(ctx context.Context, api *caller, asked *query) (*plimsollv1.ListClustersResponse, error) {
	all := &plimsollv1.ListClustersResponse{}
	for token := ""; ; {
		call, cancel := api.call(ctx, 0)
		page, err := plimsollv1.NewClusterServiceClient(api).ListClusters(call, &plimsollv1.ListClustersRequest{
			PageSize: pageOf, PageToken: token, Filter: asked.filter, OrderBy: asked.orderBy,
		})
		cancel()
		if err != nil {
			return nil, err
		}
		all.Clusters = append(all.Clusters, page.GetClusters()...)
		all.Unreachable = append(all.Unreachable, page.GetUnreachable()...)
		all.AsOf = oldest(all.AsOf, page.GetAsOf())
		if token = page.GetNextPageToken(); token == "" {
			return all, nil
		}
	}
}

func clustersTable(to io.Writer, env Environment, all *plimsollv1.ListClustersResponse) error {
	if len(all.GetClusters()) == 0 {
		fmt.Fprintln(env.Err, "No clusters are registered, or none that you may see.")
		return nil
	}
	rows := newTable("NAME", "STATE", "REASON", "VERSION", "OWNER", "SPOT", "ON-DEMAND", "AGE")
	for _, c := range all.GetClusters() {
		spot, onDemand := none, none
		if n := c.GetWorkloads(); n != nil {
			spot, onDemand = of(n.GetSpotActual(), n.GetSpotWanted()), of(n.GetOnDemandActual(), n.GetOnDemandWanted())
		}
		rows.add(c.GetName(), word(c.GetState(), "CLUSTER_STATE_"), c.GetReason(), c.GetKubernetesVersion(), c.GetOwner(),
			spot, onDemand, age(c.GetRegisteredAt(), env.Now()))
	}
	return rows.write(to)
}

// oldest returns the earlier of two moments; nil is none.
func oldest(a, b *timestamppb.Timestamp) *timestamppb.Timestamp {
	if a == nil || b != nil && b.AsTime().Before(a.AsTime()) {
		return b
	}
	return a
}
