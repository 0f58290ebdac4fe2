package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

func controllersCommand(env Environment) *cobra.Command {
	conn, out, asked := connection.New(env.Getenv), output{}, query{}
	var cluster string
	command := &cobra.Command{
		Use:   "controllers",
		Short: "List the controllers that work in each cluster",
		Example: `  # List the controllers of all clusters
  plimsoll get controllers

  # Follow the queues of one cluster
  plimsoll get controllers --cluster prod-eu --watch`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			if asked.watch {
				return followControllers(c.Context(), api, env, &out, cluster)
			}
			found, err := listControllers(c.Context(), api, cluster)
			if err != nil {
				return err
			}
			warn(env.Err, found.GetUnreachable())
			return out.write(env.Out, found, controllerNames(found), func(to io.Writer) error { return controllersTable(to, env, found) })
		},
	}
	command.Flags().StringVar(&cluster, "cluster", "", "only controllers of this cluster")
	complete(command, "cluster", completeClusters(conn))
	conn.AddFlags(command)
	out.flags(command)
	asked.watchFlag(command)
	return command
}

// listControllers reads all pages into one answer.
func listControllers(ctx context.Context, api *connection.Client, cluster string) (*plimsollv1.ListControllersResponse, error) {
	return allPages(ctx, api, func(ctx context.Context, token string) (*plimsollv1.ListControllersResponse, error) {
		return plimsollv1.NewObjectServiceClient(api).ListControllers(ctx, &plimsollv1.ListControllersRequest{
			Cluster: cluster, PageSize: pageOf, PageToken: token,
		})
	})
}

func controllerNames(all *plimsollv1.ListControllersResponse) []string {
	names := make([]string, 0, len(all.GetControllers()))
	for _, c := range all.GetControllers() {
		names = append(names, controllerName(c))
	}
	return names
}

func controllerName(c *plimsollv1.Controller) string {
	return "controller/" + c.GetCluster() + "/" + c.GetName()
}

// followControllers prints controllers and their changes.
func followControllers(ctx context.Context, api *connection.Client, env Environment, out *output, cluster string) error {
	followed := polled[*plimsollv1.Controller]{env: env, out: out, kind: "controller", name: controllerName}
	followed.read = func(ctx context.Context) ([]*plimsollv1.Controller, []*plimsollv1.UnreachableMember, error) {
		found, err := listControllers(ctx, api, cluster)
		return found.GetControllers(), found.GetUnreachable(), err
	}
	followed.line = func(c *plimsollv1.Controller) string {
		return fmt.Sprintf("%s  %s  objects %d  queued %d  running %d  %s", c.GetCluster(), c.GetName(), c.GetObjects(), c.GetQueued(), c.GetRunning(), c.GetHeld())
	}
	return followed.follow(ctx, pollEvery)
}

func controllersTable(to io.Writer, env Environment, all *plimsollv1.ListControllersResponse) error {
	if len(all.GetControllers()) == 0 {
		fmt.Fprintln(env.Err, "No controllers found, or none that you may see.")
		return nil
	}
	rows := newTable("CLUSTER", "CONTROLLER", "KIND", "OBJECTS", "QUEUED", "RUNNING", "HELD")
	for _, c := range all.GetControllers() {
		rows.add(c.GetCluster(), c.GetName(), c.GetKind(), fmt.Sprint(c.GetObjects()), fmt.Sprint(c.GetQueued()), fmt.Sprint(c.GetRunning()), c.GetHeld())
	}
	return rows.write(to)
}
