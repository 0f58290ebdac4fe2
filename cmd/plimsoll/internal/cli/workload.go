package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/duration"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

func workloadCommand(env Environment) *cobra.Command {
	conn, out := connection.New(env.Getenv), output{}
	var namespace string
	command := &cobra.Command{
		Use:   "workload " + workloadUse,
		Short: "Show one workload with its policy and pods",
		Long:  "Show one workload with its policy and pods." + workloadLong,
		Example: `  # Describe a Deployment
  plimsoll describe workload prod-eu deployment/cart -n shop`,
		Args:              workloadArguments,
		ValidArgsFunction: completeWorkloads(conn, &namespace),
		RunE: func(c *cobra.Command, args []string) error {
			key, err := parseWorkloadArguments(args, namespace)
			if err != nil {
				return usage(c, err)
			}
			return showWorkload(c.Context(), env, conn, &out, key, func(to io.Writer, w *plimsollv1.Workload) error {
				return workloadDetails(to, env, w)
			})
		},
	}
	workloadNamespace(command, &namespace)
	complete(command, "namespace", completeNamespaces(conn))
	conn.AddFlags(command)
	out.flags(command)
	return command
}

// showWorkload asks for one workload and writes it, as text in the way of the command that shows it.
func showWorkload(ctx context.Context, env Environment, conn *connection.Options, out *output, key workloadKey, text func(io.Writer, *plimsollv1.Workload) error) error {
	api, err := conn.Open(ctx)
	if err != nil {
		return err
	}
	defer api.Close()
	found, err := wholeWorkload(ctx, api, key.get())
	if err != nil {
		return hintLabels(err, key)
	}
	warn(env.Err, found.GetUnreachable())
	return out.write(env.Out, found, []string{workloadName(found.GetWorkload())}, func(to io.Writer) error { return text(to, found.GetWorkload()) })
}

// wholeWorkload reads a workload with all pages of its pods.
func wholeWorkload(ctx context.Context, api *connection.Client, request *plimsollv1.GetWorkloadRequest) (*plimsollv1.GetWorkloadResponse, error) {
	var whole *plimsollv1.GetWorkloadResponse
	err := api.EachPage(ctx, func(ctx context.Context, token string) (string, error) {
		request.PageToken = token
		page, err := plimsollv1.NewWorkloadServiceClient(api).GetWorkload(ctx, request)
		if err != nil {
			return "", err
		}
		if whole == nil {
			whole = page
		} else {
			whole.Workload.Pods = append(whole.Workload.Pods, page.GetWorkload().GetPods()...)
		}
		return page.GetNextPageToken(), nil
	})
	if err != nil {
		return nil, err
	}
	whole.NextPageToken = ""
	return whole, nil
}

// hintLabels adds to the error about a workload that is not enabled how to set the labels that are missing. An older hub does not say
// which those are; then the hint is how to see it.
func hintLabels(err error, key workloadKey) error {
	kind, name, namespace := strings.ToLower(plain(key.kind)), plain(key.name), plain(key.namespace)
	if status.Code(err) != codes.NotFound {
		return err
	}
	if about := notEnabled(err); about != nil {
		if commands := labelCommands(about, kind, name, namespace); commands != "" {
			return &connection.HintedError{Cause: err, Hint: "in the member: " + commands}
		}
		return err
	}
	if !strings.Contains(err.Error(), "is enabled") {
		return err
	}
	return &connection.HintedError{Cause: err, Hint: fmt.Sprintf("the label plimsoll.dev/enabled=true is needed on the workload itself, not on its pod template, and on its namespace; "+
		"in the member: kubectl -n %s get %s %s --show-labels; kubectl get namespace %s --show-labels", namespace, kind, name, namespace)}
}

// notEnabled are the details of the hub's error about a workload that is not enabled; nil: it is another error.
func notEnabled(err error) map[string]string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetReason() == "WORKLOAD_NOT_ENABLED" {
			return info.GetMetadata()
		}
	}
	return nil
}

// labelCommands set the label on what does not have it.
func labelCommands(about map[string]string, kind, name, namespace string) string {
	label := plain(about["label"]) + "=true"
	var commands []string
	for object := range strings.SplitSeq(about["missing_on"], ",") {
		switch object {
		case "workload":
			commands = append(commands, fmt.Sprintf("kubectl -n %s label %s %s %s --overwrite", namespace, kind, name, label))
		case "namespace":
			commands = append(commands, fmt.Sprintf("kubectl label namespace %s %s --overwrite", namespace, label))
		}
	}
	return strings.Join(commands, "; ")
}

func workloadDetails(to io.Writer, env Environment, w *plimsollv1.Workload) error {
	p := w.GetPlacement()
	facts := newTable("WORKLOAD", fmt.Sprintf("%s/%s/%s of %s", w.GetNamespace(), strings.ToLower(w.GetKind()), w.GetName(), w.GetCluster()))
	facts.add("State", word(w.GetState(), "WORKLOAD_STATE_")+": "+p.GetReason())
	facts.add("Replicas", fmt.Sprintf("%d, %d not ready, %d of unknown capacity", p.GetReplicas(), p.GetPending(), p.GetUnassigned()))
	facts.add("Spot", fmt.Sprintf("%d of %d", p.GetSpotActual(), p.GetSpotWanted()))
	facts.add("On-demand", fmt.Sprintf("%d of %d", p.GetOnDemandActual(), p.GetOnDemandWanted()))
	facts.add("Spot percentage", policyValue(p.SpotPercentage, p.GetSpotPercentageSource()))
	facts.add("Minimum on-demand", policyValue(p.MinOnDemand, p.GetMinOnDemandSource()))
	if p.GetUnprotected() {
		facts.add("Unprotected", "no PodDisruptionBudget keeps a node drain from evicting the whole on-demand floor")
	}
	for _, problem := range p.GetProblems() {
		facts.add("Problem", fmt.Sprintf("%s %q: must be %s", problem.GetKey(), problem.GetValue(), problem.GetRule()))
	}
	if at := p.GetNextCheckAt(); at != nil {
		facts.add("Next look", "in "+duration.HumanDuration(max(at.AsTime().Sub(env.Now()), 0)))
	}
	if err := facts.write(to); err != nil || len(w.GetPods()) == 0 {
		return err
	}
	fmt.Fprintln(to)
	return podTable(to, w.GetPods())
}

func podTable(to io.Writer, list []*plimsollv1.Pod) error {
	pods := newTable("POD", "SLOT", "WANTED", "ACTUAL", "NODE", "PHASE", "READY", "REASON")
	for _, pod := range list {
		slot := none
		if pod.Slot != nil {
			slot = fmt.Sprint(pod.GetSlot())
		}
		pods.add(pod.GetName(), slot, capacity(pod.GetCapacityTypeWanted()), capacity(pod.GetCapacityTypeActual()), pod.GetNode(), pod.GetPhase(),
			yesNo(pod.GetReady()), pod.GetReason())
	}
	return pods.write(to)
}

// policyValue is a value and where it comes from.
func policyValue(value *int32, source plimsollv1.ValueSource) string {
	from := strings.ToLower(word(source, "VALUE_SOURCE_"))
	switch {
	case value != nil:
		return fmt.Sprintf("%d (%s)", *value, from)
	case source != plimsollv1.ValueSource_VALUE_SOURCE_UNSPECIFIED:
		return fmt.Sprintf("invalid (%s)", from)
	}
	return none
}

func capacity(of plimsollv1.CapacityType) string {
	switch of {
	case plimsollv1.CapacityType_CAPACITY_TYPE_SPOT:
		return "spot"
	case plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND:
		return "on-demand"
	}
	return none
}
