package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func controllersCommand(env Environment) *cobra.Command {
	conn, out := connection{env: env}, output{}
	var cluster string
	command := &cobra.Command{
		Use:   "controllers",
		Short: "List the controllers that work in each member",
		Example: `  plimsoll controllers
  plimsoll controllers --cluster prod-eu`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := conn.open(c.Context())
			if err != nil {
				return err
			}
			defer api.close()
			found, err := listControllers(c.Context(), api, cluster)
			if err != nil {
				return err
			}
			warn(env.Err, found.GetUnreachable())
			return out.write(env.Out, found, func(to io.Writer) error { return controllersTable(to, env, found) })
		},
	}
	command.Flags().StringVar(&cluster, "cluster", "", "only controllers in this member")
	conn.flags(command)
	out.flags(command)
	return command
}

// listControllers reads all pages into one answer.
func listControllers(ctx context.Context, api *caller, cluster string) (*plimsollv1.ListControllersResponse, error) {
	all := &plimsollv1.ListControllersResponse{}
	for token := ""; ; {
		call, cancel := api.call(ctx, 0)
		page, err := plimsollv1.NewObjectServiceClient(api).ListControllers(call, &plimsollv1.ListControllersRequest{
			Cluster: cluster, PageSize: pageOf, PageToken: token,
		})
		cancel()
		if err != nil {
			return nil, err
		}
		all.Controllers = append(all.Controllers, page.GetControllers()...)
		all.Unreachable = append(all.Unreachable, page.GetUnreachable()...)
		all.AsOf = oldest(all.AsOf, page.GetAsOf())
		if token = page.GetNextPageToken(); token == "" {
			return all, nil
		}
	}
}

func controllersTable(to io.Writer, env Environment, all *plimsollv1.ListControllersResponse) error {
	if len(all.GetControllers()) == 0 {
		fmt.Fprintln(env.Err, "No controller works in a member, or in none that you may see.")
		return nil
	}
	rows := newTable("CLUSTER", "CONTROLLER", "KIND", "OBJECTS", "QUEUED", "RUNNING", "HELD")
	for _, c := range all.GetControllers() {
		rows.add(c.GetCluster(), c.GetName(), c.GetKind(), fmt.Sprint(c.GetObjects()), fmt.Sprint(c.GetQueued()), fmt.Sprint(c.GetRunning()), c.GetHeld())
	}
	return rows.write(to)
}

func objectsCommand(env Environment) *cobra.Command {
	conn, out, asked := connection{env: env}, output{}, query{}
	var filter plimsollv1.ListObjectsRequest
	command := &cobra.Command{
		Use:   "objects",
		Short: "List the objects of all controllers, and how their last reconciles ended",
		Example: `  plimsoll objects --cluster prod-eu --controller webapp
  plimsoll objects -n shop -o yaml
  plimsoll objects --filter 'object.last_outcome == "ERROR"' --order-by 'attempts desc'`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := conn.open(c.Context())
			if err != nil {
				return err
			}
			defer api.close()
			if asked.watch {
				stream, err := plimsollv1.NewObjectServiceClient(api).WatchObjects(api.named(c.Context()), &plimsollv1.WatchObjectsRequest{
					Cluster: filter.GetCluster(), Controller: filter.GetController(), Namespace: filter.GetNamespace(), Filter: asked.filter,
				})
				return watch(stream, err, env, &out, objectChange)
			}
			filter.Filter, filter.OrderBy = asked.filter, asked.orderBy
			found, err := listObjects(c.Context(), api, &filter)
			if err != nil {
				return err
			}
			warn(env.Err, found.GetUnreachable())
			return out.write(env.Out, found, func(to io.Writer) error { return objectsTable(to, env, found) })
		},
	}
	flags := command.Flags()
	flags.StringVar(&filter.Cluster, "cluster", "", "only objects of this member")
	flags.StringVar(&filter.Controller, "controller", "", "only objects of this controller")
	flags.StringVarP(&filter.Namespace, "namespace", "n", "", "only objects of this namespace")
	conn.flags(command)
	out.flags(command)
	asked.flags(command, `object.last_outcome == "ERROR" && object.attempts > 3`)
	return command
}

// listObjects reads all pages into one answer.
func listObjects(ctx context.Context, api *caller, filter *plimsollv1.ListObjectsRequest) (*plimsollv1.ListObjectsResponse, error) {
	all := &plimsollv1.ListObjectsResponse{}
	for token := ""; ; {
		call, cancel := api.call(ctx, 0)
		page, err := plimsollv1.NewObjectServiceClient(api).ListObjects(call, &plimsollv1.ListObjectsRequest{
			Cluster: filter.GetCluster(), Controller: filter.GetController(), Namespace: filter.GetNamespace(), PageSize: pageOf, PageToken: token,
			Filter: filter.GetFilter(), OrderBy: filter.GetOrderBy(),
		})
		cancel()
		if err != nil {
			return nil, err
		}
		all.Objects = append(all.Objects, page.GetObjects()...)
		all.Unreachable = append(all.Unreachable, page.GetUnreachable()...)
		all.AsOf = oldest(all.AsOf, page.GetAsOf())
		if token = page.GetNextPageToken(); token == "" {
			return all, nil
		}
	}
}

// objectChange is a key in one line.
func objectChange(m *plimsollv1.WatchObjectsResponse) string {
	o := m.GetObject()
	key := o.GetKey()
	return fmt.Sprintf("%s  %s  %s  %s  %s", key.GetCluster(), key.GetController(), strings.TrimPrefix(key.GetNamespace()+"/"+key.GetName(), "/"),
		word(o.GetState(), "RECONCILE_STATE_"), orElse(o.GetLastError(), o.GetReason()))
}

func objectsTable(to io.Writer, env Environment, all *plimsollv1.ListObjectsResponse) error {
	if len(all.GetObjects()) == 0 {
		fmt.Fprintln(env.Err, "No controller knows such an object, or none that you may see.")
		return nil
	}
	rows := newTable("CLUSTER", "CONTROLLER", "OBJECT", "STATE", "LAST", "ATTEMPTS", "NEXT", "REASON")
	for _, o := range all.GetObjects() {
		key, next, reason := o.GetKey(), none, o.GetLastError()
		if at := o.GetNextTryAt(); at != nil {
			next = "in " + duration.HumanDuration(max(at.AsTime().Sub(env.Now()), 0))
		}
		if reason == "" {
			reason = o.GetReason()
		}
		last := none
		if o.GetLastOutcome() != plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_UNSPECIFIED {
			last = word(o.GetLastOutcome(), "RECONCILE_OUTCOME_")
		}
		rows.add(key.GetCluster(), key.GetController(), strings.TrimPrefix(key.GetNamespace()+"/"+key.GetName(), "/"),
			word(o.GetState(), "RECONCILE_STATE_"), last, fmt.Sprint(o.GetAttempts()), next, reason)
	}
	return rows.write(to)
}
