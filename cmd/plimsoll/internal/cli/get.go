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
		Short:   "List clusters, workloads, FleetPlacements, objects, controllers, operations, or events",
		Long: `List clusters, workloads, FleetPlacements, objects, controllers, operations, or events.

Prints a table by default. -o json prints the answer of the REST API; -o jsonpath and -o go-template apply their template to it.`,
		Example: `  # List all clusters
  plimsoll get clusters

  # List the workloads of one cluster, with more columns
  plimsoll get workloads --cluster prod-eu -o wide

  # Show two clusters by name
  plimsoll get clusters prod-eu prod-us

  # List the names of the clusters that are not ready
  plimsoll get clusters --filter 'cluster.state != "READY"' -o name

  # Watch the objects whose last reconcile failed
  plimsoll get objects --filter 'object.last_outcome == "ERROR"' --watch`,
		Args: needsResource("clusters, workloads, fleetplacements, objects, controllers, operations, or events"),
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	add := func(one *cobra.Command, aliases ...string) {
		one.Aliases = append(one.Aliases, aliases...)
		command.AddCommand(one)
	}
	add(clustersCommand(env), "cluster", "member")
	add(workloadsCommand(env), "workload", "wl")
	add(fleetPlacementsCommand(env), "fleetplacement", "fp")
	add(objectsCommand(env), "object")
	add(controllersCommand(env), "controller")
	add(operationsCommand(env), "operation")
	add(eventsCommand(env), "event", "ev")
	return command
}

// describeCommand shows one resource in full.
func describeCommand(env Environment) *cobra.Command {
	command := &cobra.Command{
		Use:   "describe RESOURCE",
		Short: "Show one cluster, workload or FleetPlacement in detail",
		Example: `  # Describe a cluster: its conditions, cached kinds, and replicas
  plimsoll describe cluster prod-eu

  # Describe a workload: its policy and pods
  plimsoll describe workload prod-eu deployment/cart -n shop

  # Describe a FleetPlacement: its members and last moves
  plimsoll describe fleetplacement web -n shop`,
		Args: needsResource("cluster, workload or fleetplacement"),
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cluster, workload := clusterCommand(env), workloadCommand(env)
	cluster.Aliases = append(cluster.Aliases, "clusters", "members")
	workload.Aliases = append(workload.Aliases, "workloads", "wl")
	placement := fleetPlacementCommand(env)
	placement.Aliases = append(placement.Aliases, "fleetplacements", "fp")
	command.AddCommand(cluster, workload, placement)
	return command
}

// needsResource is what a command answers that was called without one of its commands.
func needsResource(all string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(c, errors.New("missing: RESOURCE, one of "+all))
		}
		return usage(c, errors.New(args[0]+" is not a resource: must be one of "+all))
	}
}

// fleetCommand is the list of FleetPlacements under a short name.
func fleetCommand(env Environment) *cobra.Command {
	command := fleetPlacementsCommand(env)
	command.Use, command.Aliases = "fleet", []string{"fleetplacements"}
	return command
}

// shortForms are lists and details without get and describe before them. The help shows them in one place only.
func shortForms(env Environment) []*cobra.Command {
	all := []*cobra.Command{clustersCommand(env), clusterCommand(env), workloadsCommand(env), workloadCommand(env), objectsCommand(env), controllersCommand(env), fleetCommand(env)}
	for _, c := range all {
		c.Hidden = true
	}
	return slices.Clip(all)
}
