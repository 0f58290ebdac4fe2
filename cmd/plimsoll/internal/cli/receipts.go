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

func receiptsCommand(env Environment) *cobra.Command {
	conn, out, asked := connection.New(env.Getenv), output{}, query{}
	var only plimsollv1.ListReceiptsRequest
	command := &cobra.Command{
		Use:   "receipts",
		Short: "List requeues with their progress",
		Example: `  # List what was ordered and has not run yet
  plimsoll get receipts --filter 'receipt.state == "PENDING"'

  # List the newest first
  plimsoll get receipts --order-by 'accepted_at desc'`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			only.Filter, only.OrderBy, only.PageSize = asked.filter, asked.orderBy, pageOf
			found, err := listReceipts(c.Context(), api, &only)
			if err != nil {
				return err
			}
			warn(env.Err, found.GetUnreachable())
			return out.write(env.Out, found, receiptNames(found), func(to io.Writer) error { return receiptsTable(to, env, found, out.wide()) })
		},
	}
	flags := command.Flags()
	flags.StringVar(&only.Cluster, "cluster", "", "only requeues in this cluster")
	flags.StringVarP(&only.Namespace, "namespace", "n", "", "only requeues of objects in this namespace")
	complete(command, "cluster", completeClusters(conn))
	conn.AddFlags(command)
	out.flags(command)
	asked.listFlags(command, `receipt.user == "alice"`)
	return command
}

// listReceipts reads all pages into one answer.
func listReceipts(ctx context.Context, api *connection.Client, request *plimsollv1.ListReceiptsRequest) (*plimsollv1.ListReceiptsResponse, error) {
	return allPages(ctx, api, func(ctx context.Context, token string) (*plimsollv1.ListReceiptsResponse, error) {
		request.PageToken = token
		return plimsollv1.NewObjectServiceClient(api).ListReceipts(ctx, request)
	})
}

func receiptNames(all *plimsollv1.ListReceiptsResponse) []string {
	names := make([]string, 0, len(all.GetReceipts()))
	for _, r := range all.GetReceipts() {
		names = append(names, "receipt/"+r.GetId())
	}
	return names
}

func receiptsTable(to io.Writer, env Environment, all *plimsollv1.ListReceiptsResponse, wide bool) error {
	if len(all.GetReceipts()) == 0 {
		fmt.Fprintln(env.Err, "No requeues found, or none that you may see.")
		return nil
	}
	rows := newTable(columns(wide, []string{"RECEIPT", "CLUSTER", "OBJECT", "STATE", "AGE", "USER", "MESSAGE"}, "CONTROLLER", "FILTER")...)
	for _, r := range all.GetReceipts() {
		what := keyName(r.GetKey())
		if r.GetFilter() != "" {
			what = fmt.Sprintf("%d of %d", r.GetOrdered(), r.GetMatched())
		}
		row := []string{r.GetId(), r.GetKey().GetCluster(), what, word(r.GetState(), "RECEIPT_STATE_"), age(r.GetAcceptedAt(), env.Now()), r.GetUser(), r.GetMessage()}
		rows.add(columns(wide, row, r.GetKey().GetController(), r.GetFilter())...)
	}
	return rows.write(to)
}

func cancelCommand(env Environment) *cobra.Command {
	conn, out := connection.New(env.Getenv), output{}
	command := &cobra.Command{
		Use:   "cancel RECEIPT...",
		Short: "Cancel requeues that have not started",
		Long: `Cancel requeues that have not started. For a requeue with --filter, this cancels the rest. Objects that changed meanwhile are
reconciled anyway.`,
		Example: `  # Cancel one requeue
  plimsoll cancel w.prod-eu.1

  # Cancel all that are pending
  plimsoll get receipts --filter 'receipt.state == "PENDING"' -o name | xargs plimsoll cancel`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, errors.New("missing: RECEIPT"))
			}
			return nil
		},
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

// receiptID is a receipt as the API names it, which -o name prints with its kind.
func receiptID(given string) string { return strings.TrimPrefix(given, "receipt/") }

func cancelOne(ctx context.Context, api *connection.Client, env Environment, out *output, id string) error {
	call, cancel := api.CallContext(ctx, 0)
	defer cancel()
	answer, err := plimsollv1.NewObjectServiceClient(api).CancelReceipt(call, &plimsollv1.CancelReceiptRequest{Receipt: receiptID(id)})
	if err != nil {
		return err
	}
	r := answer.GetReceipt()
	return out.write(env.Out, answer, []string{"receipt/" + r.GetId()}, func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "receipt/%s: %s: %s\n", plain(r.GetId()), word(r.GetState(), "RECEIPT_STATE_"), plain(r.GetMessage()))
		return err
	})
}
