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

// listFlags are those of a list that cannot be followed.
func (q *query) listFlags(command *cobra.Command, example string) {
	command.Flags().StringVar(&q.filter, "filter", "", "only those for which this CEL expression is true: "+example)
	command.Flags().StringVar(&q.orderBy, "order-by", "", `comma-separated fields to order by; add " desc" to a field for descending order`)
}

func (q *query) flags(command *cobra.Command, example string) {
	q.listFlags(command, example)
	flags := command.Flags()
	flags.BoolVarP(&q.watch, "watch", "w", false, "list, then watch for changes, one per line")
	before := command.PreRunE
	command.PreRunE = func(c *cobra.Command, args []string) error {
		if output, err := c.Flags().GetString("output"); err == nil && q.watch && (output == formatName || output == formatYAML) {
			return usage(c, errors.New("--watch: takes -o table, json, jsonpath or go-template"))
		}
		if q.watch && q.orderBy != "" {
			return usage(c, errors.New("--watch and --order-by: give one of them"))
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

// watch prints what a watch tells until it ends: as JSON line by line, or as what line makes of an item.
func watch[R any, M interface {
	*R
	change
}](stream grpc.ServerStreamingClient[R], err error, env Environment, out *output, line func(M) string) error {
	for err == nil {
		var message *R
		if message, err = stream.Recv(); err != nil {
			break
		}
		err = tell(env, out, M(message), line)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// tellPrograms writes a message in one line: as JSON, or as the template that was given makes it.
func tellPrograms(env Environment, out *output, message proto.Message) error {
	text, err := protojson.Marshal(message)
	if err == nil && out.template != nil {
		text, err = out.encode(text)
	}
	if err == nil {
		_, err = fmt.Fprintf(env.Out, "%s\n", text)
	}
	return err
}

func tell[M change](env Environment, out *output, message M, line func(M) string) (err error) {
	if !out.forPeople() {
		return tellPrograms(env, out, message)
	}
	switch message.GetType() {
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT:
		_, err = fmt.Fprintln(env.Out, line(message))
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_REMOVED:
		_, err = fmt.Fprintln(env.Out, line(message)+"  REMOVED")
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_RESYNC:
		_, err = fmt.Fprintln(env.Err, "listing everything again: "+message.GetReason())
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED:
		if of, has := any(message).(interface {
			GetUnreachable() []*plimsollv1.UnreachableMember
		}); has {
			warn(env.Err, of.GetUnreachable())
		}
	}
	return err
}
