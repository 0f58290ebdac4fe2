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

func workloadsCommand(env Environment) *cobra.Command {
	conn, out, asked := connection.New(env.Getenv), output{}, query{}
	var cluster, namespace string
	command := &cobra.Command{
		Use:   "workloads",
		Short: "List workloads that are enabled for spot placement",
		Long: `List workloads that are enabled for spot placement, in all namespaces unless -n names one.

SPOT and ON-DEMAND are replicas: actual/wanted.`,
		Example: `  # List the workloads of all clusters
  plimsoll get workloads

  # List the workloads of one namespace in one cluster
  plimsoll get workloads --cluster prod-eu -n shop

  # List those that have fewer replicas on spot capacity than wanted
  plimsoll get workloads --filter 'workload.placement.spot_actual < workload.placement.spot_wanted'`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			if asked.watch {
				stream, err := plimsollv1.NewWorkloadServiceClient(api).WatchWorkloads(api.WithToken(c.Context()), &plimsollv1.WatchWorkloadsRequest{
					Cluster: cluster, Namespace: namespace, Filter: asked.filter,
				})
				return watch(stream, err, env, &out, workloadChange, func(m *plimsollv1.WatchWorkloadsResponse) string { return workloadName(m.GetWorkload()) })
			}
			found, err := listWorkloads(c.Context(), api, &plimsollv1.ListWorkloadsRequest{
				Cluster: cluster, Namespace: namespace, PageSize: pageOf, Filter: asked.filter, OrderBy: asked.orderBy,
			})
			if err != nil {
				return err
			}
			warn(env.Err, found.GetUnreachable())
			return out.write(env.Out, found, workloadNames(found), func(to io.Writer) error { return workloadsTable(to, env, found, out.wide()) })
		},
	}
	flags := command.Flags()
	flags.StringVar(&cluster, "cluster", "", "only workloads of this cluster")
	complete(command, "cluster", completeClusters(conn))
	flags.StringVarP(&namespace, "namespace", "n", "", "only workloads of this namespace")
	allNamespaces(command, "workloads", &namespace)
	complete(command, "namespace", completeNamespaces(conn))
	conn.AddFlags(command)
	out.flags(command)
	asked.flags(command, `workload.placement.spot_actual < workload.placement.spot_wanted`)
	return command
}

// listWorkloads reads all pages into one answer.
func listWorkloads(ctx context.Context, api *connection.Client, request *plimsollv1.ListWorkloadsRequest) (*plimsollv1.ListWorkloadsResponse, error) {
	return allPages(ctx, api, func(ctx context.Context, token string) (*plimsollv1.ListWorkloadsResponse, error) {
		request.PageToken = token
		return plimsollv1.NewWorkloadServiceClient(api).ListWorkloads(ctx, request)
	})
}

// workloadChange is a workload in one line.
func workloadChange(m *plimsollv1.WatchWorkloadsResponse) string {
	w := m.GetWorkload()
	p := w.GetPlacement()
	return fmt.Sprintf("%s  %s/%s/%s  %s  spot %s  on-demand %s  %s", w.GetCluster(), w.GetNamespace(), w.GetKind(), w.GetName(), word(w.GetState(), "WORKLOAD_STATE_"),
		of(p.GetSpotActual(), p.GetSpotWanted()), of(p.GetOnDemandActual(), p.GetOnDemandWanted()), p.GetReason())
}

func workloadNames(all *plimsollv1.ListWorkloadsResponse) []string {
	names := make([]string, 0, len(all.GetWorkloads()))
	for _, w := range all.GetWorkloads() {
		names = append(names, workloadName(w))
	}
	return names
}

// workloadName names a workload in the fleet.
func workloadName(w *plimsollv1.Workload) string {
	return "workload/" + w.GetCluster() + "/" + w.GetNamespace() + "/" + strings.ToLower(w.GetKind()) + "/" + w.GetName()
}

func workloadsTable(to io.Writer, env Environment, all *plimsollv1.ListWorkloadsResponse, wide bool) error {
	if len(all.GetWorkloads()) == 0 {
		fmt.Fprintln(env.Err, "No workloads are enabled for spot placement, or none that you may see.")
		return nil
	}
	rows := newTable(columns(wide, []string{"CLUSTER", "NAMESPACE", "KIND", "NAME", "REPLICAS", "SPOT", "ON-DEMAND", "STATE", "REASON"},
		"SPOT-PERCENTAGE", "MIN-ON-DEMAND", "NOT-READY", "UNPROTECTED")...)
	for _, w := range all.GetWorkloads() {
		p := w.GetPlacement()
		row := []string{w.GetCluster(), w.GetNamespace(), w.GetKind(), w.GetName(), fmt.Sprint(p.GetReplicas()),
			of(p.GetSpotActual(), p.GetSpotWanted()), of(p.GetOnDemandActual(), p.GetOnDemandWanted()),
			word(w.GetState(), "WORKLOAD_STATE_"), p.GetReason()}
		rows.add(columns(wide, row, policyValue(p.SpotPercentage, p.GetSpotPercentageSource()), policyValue(p.MinOnDemand, p.GetMinOnDemandSource()),
			fmt.Sprint(p.GetPending()), yesNo(p.GetUnprotected()))...)
	}
	return rows.write(to)
}
