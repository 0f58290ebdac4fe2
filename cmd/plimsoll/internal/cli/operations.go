package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

func operationsCommand(env Environment) *cobra.Command {
	conn, out, asked := connection.New(env.Getenv), output{}, query{}
	var only plimsollv1.ListOperationsRequest
	command := &cobra.Command{
		Use:   "operations",
		Short: "List requeues with their progress",
		Example: `  # List what was ordered and has not run yet
  plimsoll get operations --filter 'operation.state == "PENDING"'

  # List the newest first
  plimsoll get operations --order-by 'accepted_at desc'

  # Follow the progress of what you ordered
  plimsoll get operations --filter 'operation.user == "alice"' --watch`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			only.Filter, only.OrderBy, only.PageSize = asked.filter, asked.orderBy, pageOf
			if asked.watch {
				return followOperations(c.Context(), api, env, &out, &only)
			}
			found, err := listOperations(c.Context(), api, &only)
			if err != nil {
				return err
			}
			warn(env.Err, found.GetUnreachable())
			return out.write(env.Out, found, operationNames(found), func(to io.Writer) error { return operationsTable(to, env, found, out.wide()) })
		},
	}
	flags := command.Flags()
	flags.StringVar(&only.Cluster, "cluster", "", "only requeues in this cluster")
	flags.StringVarP(&only.Namespace, "namespace", "n", "", "only requeues of objects in this namespace")
	allNamespaces(command, "requeues", &only.Namespace)
	complete(command, "namespace", completeNamespaces(conn))
	complete(command, "cluster", completeClusters(conn))
	conn.AddFlags(command)
	out.flags(command)
	asked.flags(command, `operation.user == "alice"`)
	return command
}

// listOperations reads all pages into one answer.
func listOperations(ctx context.Context, api *connection.Client, request *plimsollv1.ListOperationsRequest) (*plimsollv1.ListOperationsResponse, error) {
	return allPages(ctx, api, func(ctx context.Context, token string) (*plimsollv1.ListOperationsResponse, error) {
		request.PageToken = token
		return plimsollv1.NewObjectServiceClient(api).ListOperations(ctx, request)
	})
}

func operationNames(all *plimsollv1.ListOperationsResponse) []string {
	names := make([]string, 0, len(all.GetOperations()))
	for _, r := range all.GetOperations() {
		names = append(names, operationName(r))
	}
	return names
}

func operationName(r *plimsollv1.Operation) string { return "operation/" + r.GetId() }

// operationObject is what a operation is about: an object, or how many of those that match.
func operationObject(r *plimsollv1.Operation) string {
	if r.GetFilter() != "" {
		return fmt.Sprintf("%d of %d", r.GetOrdered(), r.GetMatched())
	}
	return keyName(r.GetKey())
}

// followOperations prints operations and their changes.
func followOperations(ctx context.Context, api *connection.Client, env Environment, out *output, only *plimsollv1.ListOperationsRequest) error {
	followed := polled[*plimsollv1.Operation]{env: env, out: out, kind: "operation", name: operationName}
	followed.read = func(ctx context.Context) ([]*plimsollv1.Operation, []*plimsollv1.UnreachableMember, error) {
		found, err := listOperations(ctx, api, only)
		return found.GetOperations(), found.GetUnreachable(), err
	}
	followed.line = func(r *plimsollv1.Operation) string {
		return fmt.Sprintf("%s  %s  %s  %s  %s", r.GetId(), r.GetKey().GetCluster(), operationObject(r), word(r.GetState(), "OPERATION_STATE_"), r.GetMessage())
	}
	return followed.follow(ctx, pollEvery)
}

func operationsTable(to io.Writer, env Environment, all *plimsollv1.ListOperationsResponse, wide bool) error {
	if len(all.GetOperations()) == 0 {
		fmt.Fprintln(env.Err, "No requeues found, or none that you may see.")
		return nil
	}
	rows := newTable(columns(wide, []string{"OPERATION", "CLUSTER", "OBJECT", "STATE", "AGE", "USER", "MESSAGE"}, "CONTROLLER", "FILTER")...)
	for _, r := range all.GetOperations() {
		row := []string{r.GetId(), r.GetKey().GetCluster(), operationObject(r), word(r.GetState(), "OPERATION_STATE_"), age(r.GetAcceptedAt(), env.Now()), r.GetUser(), r.GetMessage()}
		rows.add(columns(wide, row, r.GetKey().GetController(), r.GetFilter())...)
	}
	return rows.write(to)
}

func cancelCommand(env Environment) *cobra.Command {
	conn, out := connection.New(env.Getenv), output{}
	command := &cobra.Command{
		Use:   "cancel OPERATION...",
		Short: "Cancel requeues that have not started",
		Long: `Cancel requeues that have not started. For a requeue with --filter, this cancels the rest. Objects that changed meanwhile are
reconciled anyway.`,
		Example: `  # Cancel one requeue
  plimsoll cancel w.prod-eu.1

  # Cancel all that are pending
  plimsoll get operations --filter 'operation.state == "PENDING"' -o name | xargs -r plimsoll cancel`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, errors.New("missing: OPERATION"))
			}
			return nil
		},
		ValidArgsFunction: completeOperations(conn),
		RunE: func(c *cobra.Command, args []string) error {
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			for _, id := range args {
				if err := cancelOne(c.Context(), api, env, &out, id); err != nil {
					return err
				}
			}
			return nil
		},
	}
	conn.AddFlags(command)
	out.flags(command)
	return command
}

// operationID is an operation as the API names it, which -o name prints with its kind.
func operationID(given string) string { return strings.TrimPrefix(given, "operation/") }

func cancelOne(ctx context.Context, api *connection.Client, env Environment, out *output, id string) error {
	call, cancel := api.CallContext(ctx, 0)
	defer cancel()
	answer, err := plimsollv1.NewObjectServiceClient(api).CancelOperation(call, &plimsollv1.CancelOperationRequest{Operation: operationID(id)})
	if err != nil {
		return err
	}
	r := answer.GetOperation()
	return out.write(env.Out, answer, []string{operationName(r)}, func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "operation/%s: %s: %s\n", plain(r.GetId()), word(r.GetState(), "OPERATION_STATE_"), plain(r.GetMessage()))
		return err
	})
}
