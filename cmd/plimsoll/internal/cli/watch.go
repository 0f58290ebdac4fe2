package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// query says which of a list are wanted, in which order, and whether it is followed.
type query struct {
	filter, orderBy string
	watch           bool
}

// listFlags are those of a list.
func (q *query) listFlags(command *cobra.Command, example string) {
	command.Flags().StringVar(&q.filter, "filter", "", "only those for which this CEL expression is true: "+example)
	command.Flags().StringVar(&q.orderBy, "order-by", "", `comma-separated fields to order by; add " desc" to a field for descending order`)
}

func (q *query) flags(command *cobra.Command, example string) {
	q.listFlags(command, example)
	q.watchFlag(command)
}

// watchFlag is that of a list that can be followed.
func (q *query) watchFlag(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVarP(&q.watch, "watch", "w", false, "list, then watch for changes, one per line")
	before := command.PreRunE
	command.PreRunE = func(c *cobra.Command, args []string) error {
		if q.watch && q.orderBy != "" {
			return usage(c, errors.New("--watch and --order-by: give one of them"))
		}
		if before != nil {
			return before(c, args)
		}
		return nil
	}
}

// removed ends the line of an item that is gone, or matches no more.
const removed = "  REMOVED"

// allNamespaces adds kubectl's -A to a list that is of all namespaces unless namespace, the value of -n, names one.
func allNamespaces(command *cobra.Command, what string, namespace *string) {
	all := command.Flags().BoolP("all-namespaces", "A", false, what+" of all namespaces, which is the default")
	before := command.PreRunE
	command.PreRunE = func(c *cobra.Command, args []string) error {
		if *all && *namespace != "" {
			return usage(c, errors.New("-A and -n: give one of them"))
		}
		if before != nil {
			return before(c, args)
		}
		return nil
	}
}

// change is a message of a watch.
type change interface {
	proto.Message
	GetType() plimsollv1.WatchEventType
	GetReason() string
}

// watch prints what a watch sends until it ends: as what line makes of an item, by its name, or each message for programs.
func watch[R any, M interface {
	*R
	change
}](stream grpc.ServerStreamingClient[R], err error, env Environment, out *output, line, name func(M) string) error {
	for err == nil {
		var message *R
		if message, err = stream.Recv(); err != nil {
			break
		}
		err = printChange(env, out, M(message), line, name)
	}
	if errors.Is(err, io.EOF) || stream != nil && stream.Context().Err() != nil { // interrupted, which is how it ends
		return nil
	}
	return err
}

// printForPrograms writes a message: as a line of JSON, a document of YAML, or a line that the template makes.
func printForPrograms(env Environment, out *output, message proto.Message) error {
	text, err := protojson.Marshal(message)
	if err != nil {
		return err
	}
	return out.writeChange(env.Out, text)
}

func printChange[M change](env Environment, out *output, message M, line, name func(M) string) (err error) {
	item := message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT || message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_REMOVED
	switch {
	case out.forPeople():
	case item && out.format == formatName:
		_, err = fmt.Fprintln(env.Out, plain(name(message)))
		return err
	case item, out.template == nil && out.format != formatName: // templates and names are those of items
		return printForPrograms(env, out, message)
	}
	switch message.GetType() {
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT:
		_, err = fmt.Fprintln(env.Out, plain(line(message)))
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_REMOVED:
		_, err = fmt.Fprintln(env.Out, plain(line(message))+removed)
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_RESYNC:
		_, err = fmt.Fprintln(env.Err, "listing everything again: "+plain(message.GetReason()))
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED:
		if of, has := any(message).(interface {
			GetUnreachable() []*plimsollv1.UnreachableMember
		}); has {
			warn(env.Err, of.GetUnreachable())
		}
	}
	return err
}
