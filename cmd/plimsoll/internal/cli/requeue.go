package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// longestWait is how long the API holds an answer back.
const longestWait = 30 * time.Second

func requeueCommand(env Environment) *cobra.Command {
	conn, out := connection{env: env}, output{}
	var wait bool
	var patience time.Duration
	command := &cobra.Command{
		Use:   "requeue CLUSTER NAMESPACE/KIND/NAME",
		Short: "Order another look at a workload, ahead of everything that waits",
		Long: `Order a reconcile of one workload ahead of everything that waits, back-off or not.

With --wait the command ends when the reconcile has; its exit code is 6 when that failed or did not end in time.`,
		Example: `  plimsoll requeue prod-eu shop/deployment/cart --wait`,
		Args:    exactly("CLUSTER", "NAMESPACE/KIND/NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			key, err := parseWorkload(args[0], args[1])
			if err != nil {
				return usage(c, err)
			}
			api, err := conn.open(c.Context())
			if err != nil {
				return err
			}
			defer api.close()
			receipt, err := order(c.Context(), api, key)
			if err != nil {
				return err
			}
			if wait {
				if receipt, err = follow(c.Context(), api, receipt, patience); err != nil {
					return err
				}
			}
			if err := out.write(env.Out, receipt, func(to io.Writer) error { return receiptLine(to, key, receipt) }); err != nil {
				return err
			}
			return verdict(key, receipt, wait, patience)
		},
	}
	command.Flags().BoolVar(&wait, "wait", false, "wait until the reconcile has ended")
	command.Flags().DurationVar(&patience, "wait-timeout", 2*time.Minute, "how long to wait at most")
	conn.flags(command)
	out.flags(command)
	return command
}

func order(ctx context.Context, api *caller, key workloadKey) (*plimsollv1.Receipt, error) {
	call, cancel := api.call(ctx, 0)
	defer cancel()
	answer, err := plimsollv1.NewWorkloadServiceClient(api).RequeueWorkload(call, key.requeue())
	return answer.GetReceipt(), err
}

// follow asks for a receipt until it is final, or patience is over.
func follow(ctx context.Context, api *caller, receipt *plimsollv1.Receipt, patience time.Duration) (*plimsollv1.Receipt, error) {
	deadline := time.Now().Add(patience)
	for !final(receipt) {
		wait := min(time.Until(deadline), longestWait)
		if wait <= 0 {
			return receipt, nil
		}
		call, cancel := api.call(ctx, wait)
		answer, err := plimsollv1.NewObjectServiceClient(api).GetReceipt(call, &plimsollv1.GetReceiptRequest{
			Receipt: receipt.GetId(), Wait: durationpb.New(wait),
		})
		cancel()
		if err != nil {
			return nil, err
		}
		receipt = answer.GetReceipt()
	}
	return receipt, nil
}

func final(receipt *plimsollv1.Receipt) bool {
	switch receipt.GetState() {
	case plimsollv1.ReceiptState_RECEIPT_STATE_DONE, plimsollv1.ReceiptState_RECEIPT_STATE_FAILED, plimsollv1.ReceiptState_RECEIPT_STATE_SUPERSEDED:
		return true
	}
	return false
}

func receiptLine(to io.Writer, key workloadKey, receipt proto.Message) error {
	r := receipt.(*plimsollv1.Receipt)
	took := ""
	if final(r) && r.GetFinishedAt() != nil {
		took = fmt.Sprintf(" after %s", r.GetFinishedAt().AsTime().Sub(r.GetAcceptedAt().AsTime()).Round(time.Millisecond))
	}
	_, err := fmt.Fprintf(to, "%s: %s%s: %s\nreceipt %s\n", key, word(r.GetState(), "RECEIPT_STATE_"), took, plain(r.GetMessage()), r.GetId())
	return err
}

// verdict is the error of an order that was waited for and did not come to a good end.
func verdict(key workloadKey, receipt *plimsollv1.Receipt, waited bool, patience time.Duration) error {
	switch {
	case !waited || receipt.GetState() == plimsollv1.ReceiptState_RECEIPT_STATE_DONE:
		return nil
	case !final(receipt):
		return &orderError{fmt.Sprintf("%s: the reconcile has not ended within %s", key, patience)}
	}
	return &orderError{fmt.Sprintf("%s: the reconcile did not come to a good end: %s", key, plain(receipt.GetMessage()))}
}
