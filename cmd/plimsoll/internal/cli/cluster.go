package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

func clusterCommand(env Environment) *cobra.Command {
	conn, out := connection.New(env.Getenv), output{}
	command := &cobra.Command{
		Use:     "cluster NAME",
		Aliases: []string{"member"},
		Short:   "Show one cluster with its conditions, cached kinds, and replicas",
		Example: `  # Describe a cluster
  plimsoll describe cluster prod-eu`,
		Args:              exactly("NAME"),
		ValidArgsFunction: completeCluster(conn),
		RunE: func(c *cobra.Command, args []string) error {
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			found, err := getCluster(c.Context(), api, args[0])
			if err != nil {
				return err
			}
			warn(env.Err, found.GetUnreachable())
			return out.write(env.Out, found, []string{"cluster/" + found.GetCluster().GetName()}, func(to io.Writer) error { return clusterDetails(to, env, found.GetCluster()) })
		},
	}
	conn.AddFlags(command)
	out.flags(command)
	return command
}

func getCluster(ctx context.Context, api *connection.Client, name string) (*plimsollv1.GetClusterResponse, error) {
	call, cancel := api.CallContext(ctx, 0)
	defer cancel()
	return plimsollv1.NewClusterServiceClient(api).GetCluster(call, &plimsollv1.GetClusterRequest{Cluster: name})
}

func clusterDetails(to io.Writer, env Environment, c *plimsollv1.Cluster) error {
	facts := newTable("CLUSTER", c.GetName())
	facts.add("State", word(c.GetState(), "CLUSTER_STATE_")+" for "+age(c.GetStateChangedAt(), env.Now()))
	facts.add("Reason", reasonOf(c.GetReason(), c.GetMessage()))
	facts.add("Server", c.GetServer())
	facts.add("Kubernetes", c.GetKubernetesVersion())
	facts.add("Owner", c.GetOwner())
	facts.add("Registered", ago(age(c.GetRegisteredAt(), env.Now())))
	facts.add("Last probe", ago(age(c.GetLastProbeAt(), env.Now())))
	if n := c.GetWorkloads(); n != nil {
		facts.add("Workloads", fmt.Sprintf("%d managed", n.GetManaged()))
		facts.add("Spot", fmt.Sprintf("%d of %d", n.GetSpotActual(), n.GetSpotWanted()))
		facts.add("On-demand", fmt.Sprintf("%d of %d", n.GetOnDemandActual(), n.GetOnDemandWanted()))
	}
	conditions := newTable("CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE")
	for _, is := range c.GetConditions() {
		conditions.add(is.GetType(), is.GetStatus(), is.GetReason(), age(is.GetLastTransitionTime(), env.Now()), is.GetMessage())
	}
	kinds := newTable("KIND", "CACHED", "REASON")
	for _, kind := range c.GetKinds() {
		kinds.add(kind.GetName(), yesNo(kind.GetEngaged()), kind.GetReason())
	}
	return writeTables(to, facts, conditions, kinds)
}

// writeTables writes tables with an empty line between them, and leaves out those that have a header only.
func writeTables(to io.Writer, tables ...*table) error {
	for i, t := range tables {
		if i > 0 && len(t.rows) == 1 {
			continue
		}
		if i > 0 {
			fmt.Fprintln(to)
		}
		if err := t.write(to); err != nil {
			return err
		}
	}
	return nil
}

// reasonOf is a word and the sentence that explains it, as far as they are there.
func reasonOf(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// ago makes a moment of an age.
func ago(age string) string {
	if age == none {
		return none
	}
	return age + " ago"
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
