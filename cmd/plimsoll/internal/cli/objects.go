package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

func objectsCommand(env Environment) *cobra.Command {
	conn, out, asked := connection.New(env.Getenv), output{}, query{}
	var filter plimsollv1.ListObjectsRequest
	command := &cobra.Command{
		Use:   "objects",
		Short: "List the objects of all controllers with the state of their reconciles",
		Example: `  # List the objects of one controller in one cluster
  plimsoll get objects --cluster prod-eu --controller webapp

  # List what fails, what was tried most often first
  plimsoll get objects --filter 'object.last_outcome == "ERROR"' --order-by 'attempts desc'

  # List what has been failing for more than an hour, the longest first
  plimsoll get objects --filter 'object.attempts > 0 && now - object.failing_since > duration("1h")' --order-by failing_since`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			if asked.watch {
				stream, err := plimsollv1.NewObjectServiceClient(api).WatchObjects(api.WithToken(c.Context()), &plimsollv1.WatchObjectsRequest{
					Cluster: filter.GetCluster(), Controller: filter.GetController(), Namespace: filter.GetNamespace(), Filter: asked.filter,
				})
				return watch(stream, err, env, &out, objectChange, func(m *plimsollv1.WatchObjectsResponse) string { return objectName(m.GetObject().GetKey()) })
			}
			filter.Filter, filter.OrderBy = asked.filter, asked.orderBy
			found, err := listObjects(c.Context(), api, &filter)
			if err != nil {
				return err
			}
			warn(env.Err, found.GetUnreachable())
			return out.write(env.Out, found, objectNames(found), func(to io.Writer) error { return objectsTable(to, env, found, out.wide()) })
		},
	}
	flags := command.Flags()
	flags.StringVar(&filter.Cluster, "cluster", "", "only objects of this cluster")
	flags.StringVar(&filter.Controller, "controller", "", "only objects of this controller")
	complete(command, "cluster", completeClusters(conn))
	complete(command, "controller", completeControllers(conn))
	flags.StringVarP(&filter.Namespace, "namespace", "n", "", "only objects of this namespace")
	allNamespaces(command, "objects", &filter.Namespace)
	complete(command, "namespace", completeNamespaces(conn))
	conn.AddFlags(command)
	out.flags(command)
	asked.flags(command, `object.last_outcome == "ERROR" && object.attempts > 3`)
	return command
}

// listObjects reads all pages into one answer.
func listObjects(ctx context.Context, api *connection.Client, filter *plimsollv1.ListObjectsRequest) (*plimsollv1.ListObjectsResponse, error) {
	return allPages(ctx, api, func(ctx context.Context, token string) (*plimsollv1.ListObjectsResponse, error) {
		return plimsollv1.NewObjectServiceClient(api).ListObjects(ctx, &plimsollv1.ListObjectsRequest{
			Cluster: filter.GetCluster(), Controller: filter.GetController(), Namespace: filter.GetNamespace(), PageSize: pageOf, PageToken: token,
			Filter: filter.GetFilter(), OrderBy: filter.GetOrderBy(),
		})
	})
}

// objectChange is a key in one line.
func objectChange(m *plimsollv1.WatchObjectsResponse) string {
	o := m.GetObject()
	key := o.GetKey()
	return fmt.Sprintf("%s  %s  %s  %s  %s", key.GetCluster(), key.GetController(), keyName(key),
		word(o.GetState(), "RECONCILE_STATE_"), cmp.Or(o.GetLastError(), o.GetReason()))
}

func objectNames(all *plimsollv1.ListObjectsResponse) []string {
	names := make([]string, 0, len(all.GetObjects()))
	for _, o := range all.GetObjects() {
		names = append(names, objectName(o.GetKey()))
	}
	return names
}

// objectName names a key in the fleet.
func objectName(key *plimsollv1.ObjectKey) string {
	return "object/" + key.GetCluster() + "/" + key.GetController() + "/" + keyName(key)
}

// tookOf is how long the last reconcile of a key took; false while none has ended.
func tookOf(o *plimsollv1.ObjectState) (time.Duration, bool) {
	from, to := o.GetLastStartedAt(), o.GetLastFinishedAt()
	if from == nil || to == nil || to.AsTime().Before(from.AsTime()) { // the next one runs
		return 0, false
	}
	return to.AsTime().Sub(from.AsTime()).Round(time.Millisecond), true
}

// keyName is NAMESPACE/NAME, or NAME of a kind without namespaces.
func keyName(key *plimsollv1.ObjectKey) string {
	return strings.TrimPrefix(key.GetNamespace()+"/"+key.GetName(), "/")
}

func objectsTable(to io.Writer, env Environment, all *plimsollv1.ListObjectsResponse, wide bool) error {
	if len(all.GetObjects()) == 0 {
		fmt.Fprintln(env.Err, "No objects found, or none that you may see.")
		return nil
	}
	rows := newTable(columns(wide, []string{"CLUSTER", "CONTROLLER", "OBJECT", "STATE", "LAST", "ATTEMPTS", "FAILING", "NEXT", "REASON"}, "STARTED", "TOOK", "PRIORITY")...)
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
		row := []string{key.GetCluster(), key.GetController(), keyName(key), word(o.GetState(), "RECONCILE_STATE_"), last, fmt.Sprint(o.GetAttempts()),
			age(o.GetFailingSince(), env.Now()), next, reason}
		took := none
		if d, ok := tookOf(o); ok {
			took = d.String()
		}
		rows.add(columns(wide, row, ago(age(o.GetLastStartedAt(), env.Now())), took, word(o.GetPriority(), "RECONCILE_PRIORITY_"))...)
	}
	return rows.write(to)
}
