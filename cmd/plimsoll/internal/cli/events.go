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

func eventsCommand(env Environment) *cobra.Command {
	conn, out, asked := connection.New(env.Getenv), output{}, query{}
	var only plimsollv1.ListEventsRequest
	command := &cobra.Command{
		Use:   "events",
		Short: "List the events of the last day: moves, shortages, interruptions, state changes of clusters, and requeues",
		Long: `List the events of the last day, the newest first: moved pods, shortages of a capacity type, interruptions of nodes, state changes of
clusters, and requeues. The replica that owns a cluster keeps its events in memory, at most 2,000 per cluster.`,
		Example: `  # List the events of one cluster
  plimsoll events --cluster prod-eu

  # List the moves because of a shortage of spot capacity
  plimsoll events --filter 'event.type == "MOVE" && event.reason == "insufficient-capacity"'

  # Follow the events of a namespace
  plimsoll events -n shop --watch`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			if asked.watch {
				stream, err := plimsollv1.NewEventServiceClient(api).WatchEvents(api.WithToken(c.Context()), &plimsollv1.WatchEventsRequest{
					Cluster: only.GetCluster(), Namespace: only.GetNamespace(), Filter: asked.filter,
				})
				return watch(stream, err, env, &out, eventChange, func(m *plimsollv1.WatchEventsResponse) string { return "event/" + m.GetEvent().GetId() })
			}
			only.Filter, only.OrderBy, only.PageSize = asked.filter, asked.orderBy, pageOf
			found, err := listEvents(c.Context(), api, &only)
			if err != nil {
				return err
			}
			warn(env.Err, found.GetUnreachable())
			return out.write(env.Out, found, eventNames(found), func(to io.Writer) error { return eventsTable(to, env, found, out.wide()) })
		},
	}
	flags := command.Flags()
	flags.StringVar(&only.Cluster, "cluster", "", "only events of this cluster")
	flags.StringVarP(&only.Namespace, "namespace", "n", "", "only events about workloads and objects in this namespace")
	allNamespaces(command, "events", &only.Namespace)
	complete(command, "namespace", completeNamespaces(conn))
	complete(command, "cluster", completeClusters(conn))
	conn.AddFlags(command)
	out.flags(command)
	asked.flags(command, `event.type == "INTERRUPTION"`)
	return command
}

// listEvents reads all pages into one answer.
func listEvents(ctx context.Context, api *connection.Client, request *plimsollv1.ListEventsRequest) (*plimsollv1.ListEventsResponse, error) {
	return allPages(ctx, api, func(ctx context.Context, token string) (*plimsollv1.ListEventsResponse, error) {
		request.PageToken = token
		return plimsollv1.NewEventServiceClient(api).ListEvents(ctx, request)
	})
}

func eventNames(all *plimsollv1.ListEventsResponse) []string {
	names := make([]string, 0, len(all.GetEvents()))
	for _, e := range all.GetEvents() {
		names = append(names, "event/"+e.GetId())
	}
	return names
}

// subjectOf is what an event is about: a workload or an object, or else the node or capacity type.
func subjectOf(e *plimsollv1.Event) string {
	if e.GetName() == "" {
		return e.GetSubject()
	}
	parts := []string{e.GetNamespace(), strings.ToLower(e.GetKind()), e.GetName()}
	var known []string
	for _, part := range parts {
		if part != "" {
			known = append(known, part)
		}
	}
	return strings.Join(known, "/")
}

// eventChange is an event in one line.
func eventChange(m *plimsollv1.WatchEventsResponse) string {
	e := m.GetEvent()
	return plain(fmt.Sprintf("%s  %s  %s  %s  %s", e.GetAt().AsTime().Local().Format("15:04:05"), e.GetCluster(), word(e.GetType(), "EVENT_TYPE_"), subjectOf(e), e.GetMessage()))
}

func eventsTable(to io.Writer, env Environment, all *plimsollv1.ListEventsResponse, wide bool) error {
	if len(all.GetEvents()) == 0 {
		fmt.Fprintln(env.Err, "No events in the last day, or none that you may see.")
		return nil
	}
	rows := newTable(columns(wide, []string{"AGE", "CLUSTER", "TYPE", "OBJECT", "REASON", "MESSAGE"}, "SUBJECT", "USER")...)
	for _, e := range all.GetEvents() {
		row := []string{age(e.GetAt(), env.Now()), e.GetCluster(), word(e.GetType(), "EVENT_TYPE_"), subjectOf(e), e.GetReason(), e.GetMessage()}
		rows.add(columns(wide, row, e.GetSubject(), e.GetUser())...)
	}
	return rows.write(to)
}
