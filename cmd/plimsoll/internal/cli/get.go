package cli

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
)

// getCommand lists resources. Each list is a command of its own as well, which is how people who ask often call it.
func getCommand(env Environment) *cobra.Command {
	command := &cobra.Command{
		Use:     "get RESOURCE",
		Aliases: []string{"list"},
		Short:   "List clusters, workloads, objects, controllers, receipts, or events",
		Long: `List clusters, workloads, objects, controllers, receipts, or events.

The output format is a table unless -o asks for another one. -o json prints what the REST API answers, and templates of
-o jsonpath and -o go-template are applied to that.`,
		Example: `  # List all clusters
  plimsoll get clusters

  # List the workloads of one cluster, with more columns
  plimsoll get workloads --cluster prod-eu -o wide

  # Show two clusters by name
  plimsoll get clusters prod-eu prod-us

  # List the names of the clusters that are not ready
  plimsoll get clusters --filter 'cluster.state != "READY"' -o name

  # Show what fails, and follow it
  plimsoll get objects --filter 'object.last_outcome == "ERROR"' --watch`,
		Args: needsResource("clusters, workloads, objects, controllers, receipts, or events"),
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	add := func(one *cobra.Command, aliases ...string) {
		one.Aliases = append(one.Aliases, aliases...)
		command.AddCommand(one)
	}
	add(clustersCommand(env), "cluster", "member")
	add(workloadsCommand(env), "workload", "wl")
	add(objectsCommand(env), "object")
	add(controllersCommand(env), "controller")
	add(receiptsCommand(env), "receipt")
	add(eventsCommand(env), "event", "ev")
	return command
}

// describeCommand shows one resource in full.
func describeCommand(env Environment) *cobra.Command {
	command := &cobra.Command{
		Use:   "describe RESOURCE",
		Short: "Show one cluster or workload in detail",
		Example: `  # Describe a cluster: its conditions, cached kinds, and replicas
  plimsoll describe cluster prod-eu

  # Describe a workload: its policy and pods
  plimsoll describe workload prod-eu deployment/cart -n shop`,
		Args: needsResource("cluster or workload"),
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cluster, workload := clusterCommand(env), workloadCommand(env)
	cluster.Aliases = append(cluster.Aliases, "clusters", "members")
	workload.Aliases = append(workload.Aliases, "workloads", "wl")
	command.AddCommand(cluster, workload)
	return command
}

// needsResource is what a command answers that was called without one of its commands.
func needsResource(all string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(c, errors.New("missing: RESOURCE, one of "+all))
		}
		return usage(c, errors.New(args[0]+" is no resource: must be one of "+all))
	}
}

// shortForms are lists and details without get and describe before them. The help shows them in one place only.
func shortForms(env Environment) []*cobra.Command {
	all := []*cobra.Command{clustersCommand(env), clusterCommand(env), workloadsCommand(env), workloadCommand(env), objectsCommand(env), controllersCommand(env)}
	for _, c := range all {
		c.Hidden = true
	}
	return slices.Clip(all)
}
