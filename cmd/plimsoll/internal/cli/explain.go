package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/util/duration"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

func explainCommand(env Environment) *cobra.Command {
	conn, out := connection.New(env.Getenv), output{}
	var namespace string
	command := &cobra.Command{
		Use:   "explain {" + workloadUse + " | fleetplacement/NAME}",
		Short: "Explain why replicas are where they are, and what they wait for",
		Long: `Explain a workload: its target and actual replicas by capacity type, what it waits for, its last moves, and why each replica is
where it is. Or explain a FleetPlacement: why its replicas are in each cluster and on each capacity type, and what could change that.` + workloadLong,
		Example: `  # Explain where the replicas of a Deployment are
  plimsoll explain prod-eu deployment/cart -n shop

  # The same as JSON
  plimsoll explain prod-eu shop/deployment/cart -o json

  # Explain where the replicas of a FleetPlacement are, in all clusters
  plimsoll explain fleetplacement/web -n shop`,
		Args:              workloadOrFleetPlacement,
		ValidArgsFunction: completeWorkloadOrFleetPlacement(conn, &namespace),
		RunE: func(c *cobra.Command, args []string) error {
			if namesFleetPlacement(args) {
				key, err := parseFleetPlacement(args[0], namespace)
				if err != nil {
					return usage(c, err)
				}
				return explainFleetPlacement(c.Context(), env, conn, &out, key)
			}
			key, err := parseWorkloadArguments(args, namespace)
			if err != nil {
				return usage(c, err)
			}
			return showWorkload(c.Context(), env, conn, &out, key, func(to io.Writer, w *plimsollv1.Workload) error {
				return explanation(to, env.Now(), w)
			})
		},
	}
	workloadNamespace(command, &namespace)
	complete(command, "namespace", completeNamespaces(conn))
	conn.AddFlags(command)
	out.flags(command)
	return command
}

func explanation(to io.Writer, now time.Time, w *plimsollv1.Workload) error {
	fmt.Fprintf(to, "%s/%s/%s of %s: %s\n", plain(w.GetNamespace()), strings.ToLower(w.GetKind()), plain(w.GetName()), plain(w.GetCluster()),
		word(w.GetState(), "WORKLOAD_STATE_"))
	for _, line := range w.GetExplanation() {
		fmt.Fprintf(to, "  %s\n", plain(line))
	}
	if window := w.GetPlacement().GetWindow(); window != nil {
		fmt.Fprintf(to, "  The disruption window %s.\n", windowState(window, now))
	}
	for _, part := range []func(io.Writer, time.Time, *plimsollv1.Workload) error{problemsPart, waitsPart, movesPart, podsPart} {
		if err := part(to, now, w); err != nil {
			return err
		}
	}
	return nil
}

func windowState(window *plimsollv1.DisruptionWindow, now time.Time) string {
	switch {
	case window.GetOpen():
		return "is open"
	case window.GetNextOpening() == nil:
		return "does not open within five years"
	}
	return "opens " + moment(window.GetNextOpening(), now)
}

func problemsPart(to io.Writer, _ time.Time, w *plimsollv1.Workload) error {
	if len(w.GetPlacement().GetProblems()) == 0 {
		return nil
	}
	fmt.Fprintln(to)
	rows := newTable("PROBLEM", "VALUE", "RULE")
	for _, problem := range w.GetPlacement().GetProblems() {
		rows.add(problem.GetKey(), fmt.Sprintf("%q", problem.GetValue()), "must be "+problem.GetRule())
	}
	return rows.write(to)
}

func waitsPart(to io.Writer, now time.Time, w *plimsollv1.Workload) error {
	if len(w.GetWaits()) == 0 {
		return nil
	}
	fmt.Fprintln(to)
	rows := newTable("WAITS FOR", "NAME", "REPLICAS", "UNTIL", "REASON")
	for _, wait := range w.GetWaits() {
		replicas := ""
		if wait.GetReplicas() > 0 {
			replicas = fmt.Sprint(wait.GetReplicas())
		}
		rows.add(word(wait.GetKind(), "WAIT_KIND_"), wait.GetSubject(), replicas, moment(wait.GetUntil(), now), wait.GetReason())
	}
	return rows.write(to)
}

func movesPart(to io.Writer, now time.Time, w *plimsollv1.Workload) error {
	return moveTable(to, now, "LAST MOVES", w.GetLastMoves())
}

func moveTable(to io.Writer, now time.Time, title string, moves []*plimsollv1.Move) error {
	if len(moves) == 0 {
		return nil
	}
	fmt.Fprintln(to)
	rows := newTable(title, "AGE", "FROM", "HOW", "WHAT FOR", "REASON")
	for _, move := range moves {
		rows.add(move.GetPod(), age(move.GetMovedAt(), now), capacity(move.GetFrom()), strings.ToLower(word(move.GetStrategy(), "MOVE_STRATEGY_")),
			strings.ToLower(word(move.GetPurpose(), "MOVE_PURPOSE_")), move.GetReason())
	}
	return rows.write(to)
}

func podsPart(to io.Writer, _ time.Time, w *plimsollv1.Workload) error {
	if len(w.GetPods()) == 0 {
		return nil
	}
	fmt.Fprintln(to)
	return podTable(to, w.GetPods())
}

// moment is a time to come, as a clock and as people count.
func moment(at *timestamppb.Timestamp, now time.Time) string {
	if at == nil {
		return none
	}
	return fmt.Sprintf("%s (in %s)", at.AsTime().Format(time.RFC3339), duration.HumanDuration(max(at.AsTime().Sub(now), 0)))
}
