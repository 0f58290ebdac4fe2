package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

// longestWait is how long the API holds an answer back.
const longestWait = 30 * time.Second

// requeueing is what `plimsoll requeue` was asked for.
type requeueing struct {
	env        Environment
	conn       *connection.Options
	out        output
	wait       bool
	patience   time.Duration
	controller string
	matching   plimsollv1.RequeueMatchingRequest
}

func requeueCommand(env Environment) *cobra.Command {
	r := requeueing{env: env, conn: connection.New(env.Getenv)}
	command := &cobra.Command{
		Use:   "requeue CLUSTER KIND/NAME",
		Short: "Reconcile a workload, an object, or everything that matches a filter now",
		Long: `Reconcile a workload now, before all queued objects and regardless of back-off. With --controller, reconcile any object
of that controller, [NAMESPACE/]NAME. With --filter, reconcile every object that matches, in all clusters or in --cluster,
at most --per-second in each.

With --wait, the command returns when the reconcile is done. The exit code is 6 if it failed or timed out.`,
		Example: `  # Reconcile a workload and wait for the result
  plimsoll requeue prod-eu deployment/cart -n shop --wait

  # Reconcile an object of another controller
  plimsoll requeue prod-eu shop/cart --controller webapp

  # Show what would be reconciled
  plimsoll requeue --filter 'object.last_outcome == "ERROR"' --dry-run`,
		ValidArgsFunction: completeWorkloads(r.conn, &r.matching.Namespace),
		Args:              r.args,
		RunE:              r.run,
	}
	r.flags(command)
	r.conn.AddFlags(command)
	r.out.flags(command)
	return command
}

func (r *requeueing) flags(command *cobra.Command) {
	flags, matching := command.Flags(), &r.matching
	flags.StringVar(&r.controller, "controller", "", "the controller that reconciles the object; without it, the object is a workload")
	flags.BoolVar(&r.wait, "wait", false, "wait until the reconcile is done")
	flags.DurationVar(&r.patience, "wait-timeout", 2*time.Minute, "maximum time to wait")
	flags.StringVar(&matching.Filter, "filter", "", `everything for which this CEL expression is true: object.last_outcome == "ERROR"`)
	flags.BoolVar(&matching.ValidateOnly, "dry-run", false, "with --filter: show what matches, and requeue nothing")
	flags.StringVar(&matching.Cluster, "cluster", "", "with --filter: only objects of this cluster")
	flags.StringVarP(&matching.Namespace, "namespace", "n", "", "namespace of the workload or object; with --filter: only objects of this namespace")
	complete(command, "cluster", completeClusters(r.conn))
	complete(command, "controller", completeControllers(r.conn))
	complete(command, "namespace", completeNamespaces(r.conn))
	flags.Int32Var(&matching.PerSecond, "per-second", 0, "with --filter: how many objects of a cluster are requeued per second; 0: 50")
	flags.BoolVar(&matching.Force, "force", false, "requeue also in clusters that do not answer; the reconcile runs as soon as they do")
	flags.StringVar(&matching.RequestId, "request-id", "", "with --filter: an ID of this requeue; repeating it with the same ID requeues nothing twice")
}

func (r *requeueing) args(c *cobra.Command, args []string) error {
	if r.matching.GetFilter() != "" {
		if r.wait {
			return usage(c, errors.New("--wait: takes one workload or object; `plimsoll get operations --watch` follows those of --filter"))
		}
		return exactly()(c, args)
	}
	for _, name := range []string{"dry-run", "cluster", "per-second", "request-id"} { // without it they would do nothing, and --dry-run would order
		if c.Flags().Changed(name) {
			return usage(c, fmt.Errorf("--%s: needs --filter", name))
		}
	}
	if r.controller != "" {
		return exactly("CLUSTER", "[NAMESPACE/]NAME")(c, args)
	}
	return workloadArguments(c, args)
}

func (r *requeueing) run(c *cobra.Command, args []string) error {
	if r.matching.GetFilter() != "" {
		r.matching.Controller = r.controller
		return requeueMatching(c, r.env, r.conn, &r.out, &r.matching)
	}
	key, err := parseOrder(args, r.matching.GetNamespace(), r.controller)
	if err != nil {
		return usage(c, err)
	}
	api, err := r.conn.Open(c.Context())
	if err != nil {
		return err
	}
	defer api.Close()
	operation, err := key.order(c.Context(), api, r.matching.GetForce())
	if err != nil {
		return err
	}
	if r.wait {
		if operation, err = follow(c.Context(), api, operation, r.patience); err != nil {
			return err
		}
	}
	names := []string{"operation/" + operation.GetId()}
	if err := r.out.write(r.env.Out, operation, names, func(to io.Writer) error { return operationLine(to, key, operation) }); err != nil {
		return err
	}
	return endOf(key, operation, r.wait, r.patience)
}

// requeueMatching orders everything that matches.
func requeueMatching(c *cobra.Command, env Environment, conn *connection.Options, out *output, request *plimsollv1.RequeueMatchingRequest) error {
	api, err := conn.Open(c.Context())
	if err != nil {
		return err
	}
	defer api.Close()
	call, cancel := api.CallContext(c.Context(), 0)
	defer cancel()
	answer, err := plimsollv1.NewObjectServiceClient(api).RequeueMatching(call, request)
	if err != nil {
		return err
	}
	warn(env.Err, answer.GetUnreachable())
	return out.write(env.Out, answer, sampled(answer), func(to io.Writer) error {
		for _, key := range answer.GetSample() {
			fmt.Fprintln(to, plain(objectKey{key.GetCluster(), key.GetController(), key.GetNamespace(), key.GetName()}.String()))
		}
		what := "are being requeued"
		if answer.GetNothingOrdered() {
			what = "match; nothing was requeued"
		}
		fmt.Fprintf(to, "%d objects %s\n", answer.GetMatched(), what)
		for _, r := range answer.GetOperations() {
			fmt.Fprintf(to, "operation %s\n", plain(r))
		}
		return nil
	})
}

// sampled names the objects that the result of many operations lists.
func sampled(answer *plimsollv1.RequeueMatchingResponse) []string {
	names := make([]string, 0, len(answer.GetSample()))
	for _, key := range answer.GetSample() {
		names = append(names, objectName(key))
	}
	return names
}

// ordered is what a reconcile is ordered of.
type ordered interface {
	fmt.Stringer
	order(ctx context.Context, api *connection.Client, force bool) (*plimsollv1.Operation, error)
}

// parseOrder reads what to reconcile: a workload or, with a controller, an object that it knows.
func parseOrder(args []string, namespace, controller string) (ordered, error) {
	if controller == "" {
		return parseWorkloadArguments(args, namespace)
	}
	text := args[1]
	if namespace != "" && !strings.Contains(text, "/") {
		text = namespace + "/" + text
	}
	return parseObject(args[0], text, controller)
}

func (k workloadKey) order(ctx context.Context, api *connection.Client, force bool) (*plimsollv1.Operation, error) {
	call, cancel := api.CallContext(ctx, 0)
	defer cancel()
	answer, err := plimsollv1.NewWorkloadServiceClient(api).RequeueWorkload(call, k.requeue(force))
	return answer.GetOperation(), err
}

// objectKey names an object of a member, as one controller sees it.
type objectKey struct{ cluster, controller, namespace, name string }

// parseObject reads NAMESPACE/NAME, or NAME.
func parseObject(cluster, text, controller string) (objectKey, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found {
		namespace, name = "", text
	}
	if name == "" || strings.Contains(name, "/") || found && namespace == "" {
		return objectKey{}, fmt.Errorf("%q: with --controller it must be NAMESPACE/NAME, or NAME for a kind without namespaces", text)
	}
	return objectKey{cluster, controller, namespace, name}, nil
}

func (k objectKey) order(ctx context.Context, api *connection.Client, force bool) (*plimsollv1.Operation, error) {
	call, cancel := api.CallContext(ctx, 0)
	defer cancel()
	answer, err := plimsollv1.NewObjectServiceClient(api).RequeueObject(call, &plimsollv1.RequeueObjectRequest{
		Cluster: k.cluster, Controller: k.controller, Namespace: k.namespace, Name: k.name, Force: force,
	})
	return answer.GetOperation(), err
}

// String is the key as people read it.
func (k objectKey) String() string {
	return fmt.Sprintf("%s (%s) of %s", strings.TrimPrefix(k.namespace+"/"+k.name, "/"), k.controller, k.cluster)
}

// follow asks for an operation until it is final, or patience is over.
func follow(ctx context.Context, api *connection.Client, operation *plimsollv1.Operation, patience time.Duration) (*plimsollv1.Operation, error) {
	deadline := time.Now().Add(patience)
	for !final(operation) {
		wait := min(time.Until(deadline), longestWait)
		if wait <= 0 {
			return operation, nil
		}
		call, cancel := api.CallContext(ctx, wait)
		answer, err := plimsollv1.NewObjectServiceClient(api).GetOperation(call, &plimsollv1.GetOperationRequest{
			Operation: operation.GetId(), Wait: durationpb.New(wait),
		})
		cancel()
		if err != nil {
			return nil, err
		}
		operation = answer.GetOperation()
	}
	return operation, nil
}

func final(operation *plimsollv1.Operation) bool {
	switch operation.GetState() {
	case plimsollv1.OperationState_OPERATION_STATE_DONE, plimsollv1.OperationState_OPERATION_STATE_FAILED, plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED,
		plimsollv1.OperationState_OPERATION_STATE_CANCELLED:
		return true
	}
	return false
}

func operationLine(to io.Writer, key fmt.Stringer, operation proto.Message) error {
	r := operation.(*plimsollv1.Operation)
	took := ""
	if final(r) && r.GetFinishedAt() != nil {
		took = fmt.Sprintf(" after %s", r.GetFinishedAt().AsTime().Sub(r.GetAcceptedAt().AsTime()).Round(time.Millisecond))
	}
	_, err := fmt.Fprintf(to, "%s: %s%s: %s\noperation %s\n", key, word(r.GetState(), "OPERATION_STATE_"), took, plain(r.GetMessage()), r.GetId())
	return err
}

// endOf is the error of an order that was waited for and did not come to a good end.
func endOf(key fmt.Stringer, operation *plimsollv1.Operation, waited bool, patience time.Duration) error {
	switch {
	case !waited || operation.GetState() == plimsollv1.OperationState_OPERATION_STATE_DONE:
		return nil
	case !final(operation):
		return &operationError{fmt.Sprintf("%s: the reconcile has not ended within %s", key, patience)}
	}
	return &operationError{fmt.Sprintf("%s: the reconcile did not come to a good end: %s", key, plain(operation.GetMessage()))}
}
