package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

// completionPatience is how long a person who pressed the tab key waits.
const completionPatience = 3 * time.Second

// complete has the values of a flag completed. It fails for flags only that the command does not have, which is a slip in this program.
func complete(command *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err)
	}
}

// live asks the hub for names; without an answer, nothing is completed.
func live(c *cobra.Command, conn *connection.Options, ask func(ctx context.Context, api *connection.Client) ([]string, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	api, err := conn.Open(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer api.Close()
	names, err := ask(ctx, api)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeClusters completes names of clusters: as the value of a flag, or as arguments.
func completeClusters(conn *connection.Options) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return live(c, conn, func(ctx context.Context, api *connection.Client) ([]string, error) {
			return clustersFrom(ctx, api, start)
		})
	}
}

// completeCluster completes the only argument of a command, which is the name of a cluster.
func completeCluster(conn *connection.Options) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeClusters(conn)(c, args, start)
	}
}

func clustersFrom(ctx context.Context, api *connection.Client, start string) ([]string, error) {
	all, err := listClusters(ctx, api, &query{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range all.GetClusters() {
		if strings.HasPrefix(c.GetName(), start) {
			names = append(names, c.GetName())
		}
	}
	return names, nil
}

// completeWorkloads completes a cluster, and then a workload in it: KIND/NAME with a namespace, else NAMESPACE/KIND/NAME.
func completeWorkloads(conn *connection.Options, namespace *string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return completeClusters(conn)(c, args, start)
		case 1:
			return live(c, conn, func(ctx context.Context, api *connection.Client) ([]string, error) {
				return workloadsFrom(ctx, api, args[0], *namespace, start)
			})
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func workloadsFrom(ctx context.Context, api *connection.Client, cluster, namespace, start string) ([]string, error) {
	all, err := listWorkloads(ctx, api, &plimsollv1.ListWorkloadsRequest{Cluster: cluster, Namespace: namespace, PageSize: pageOf})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, w := range all.GetWorkloads() {
		name := strings.ToLower(w.GetKind()) + "/" + w.GetName()
		if namespace == "" {
			name = w.GetNamespace() + "/" + name
		}
		if strings.HasPrefix(name, start) {
			names = append(names, name)
		}
	}
	return names, nil
}

// completeNamespaces completes namespaces that have workloads.
func completeNamespaces(conn *connection.Options) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return live(c, conn, func(ctx context.Context, api *connection.Client) ([]string, error) {
			all, err := listWorkloads(ctx, api, &plimsollv1.ListWorkloadsRequest{PageSize: pageOf})
			return namesOf(all.GetWorkloads(), (*plimsollv1.Workload).GetNamespace, start), err
		})
	}
}

// completeFleetNamespaces completes namespaces that have FleetPlacements.
func completeFleetNamespaces(conn *connection.Options) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return live(c, conn, func(ctx context.Context, api *connection.Client) ([]string, error) {
			all, err := listFleetPlacements(ctx, api, &plimsollv1.ListFleetPlacementsRequest{PageSize: pageOf})
			return namesOf(all.GetPlacements(), (*plimsollv1.FleetPlacement).GetNamespace, start), err
		})
	}
}

// completeOperations completes operations that can be cancelled.
func completeOperations(conn *connection.Options) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return live(c, conn, func(ctx context.Context, api *connection.Client) ([]string, error) {
			all, err := listOperations(ctx, api, &plimsollv1.ListOperationsRequest{PageSize: pageOf, Filter: `operation.state == "PENDING" || operation.state == "RUNNING" && operation.filter != ""`})
			return namesOf(all.GetOperations(), (*plimsollv1.Operation).GetId, start), err
		})
	}
}

// namesOf are the names of items that begin with start, each once, in order.
func namesOf[T any](items []T, name func(T) string, start string) (names []string) {
	for _, item := range items {
		if n := name(item); strings.HasPrefix(n, start) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// completeNoFiles keeps the shell from completing names of files where a command takes none.
func completeNoFiles(command *cobra.Command) {
	if command.ValidArgsFunction == nil && command.Runnable() && command.Name() != replayName {
		command.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, flag := range []string{"filter", "order-by", "request-id", "service-account", "server", "token"} {
		if _, has := command.GetFlagCompletionFunc(flag); !has && command.Flags().Lookup(flag) != nil {
			complete(command, flag, cobra.NoFileCompletions)
		}
	}
}

// completeControllers completes names of controllers.
func completeControllers(conn *connection.Options) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return live(c, conn, func(ctx context.Context, api *connection.Client) ([]string, error) {
			all, err := listControllers(ctx, api, "")
			if err != nil {
				return nil, err
			}
			var names []string
			known := map[string]bool{}
			for _, one := range all.GetControllers() {
				if !known[one.GetName()] && strings.HasPrefix(one.GetName(), start) {
					names = append(names, one.GetName())
				}
				known[one.GetName()] = true
			}
			return names, nil
		})
	}
}
