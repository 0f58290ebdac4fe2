package placing

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// conditions sets those of a status, by the rules of kstatus.
func (it *item) conditions(s *v1alpha1.FleetPlacementStatus, now time.Time) {
	set := func(kind string, status bool, reason, message string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: it.object.Generation,
			LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
		if status {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, c)
	}
	ready, reason, message, stalled := it.readiness(s)
	set(reconcile.ConditionReady, ready, reason, message)
	// One that goes on to hold keeps its time, or every round would write the status.
	setIf := func(holds bool, kind string) {
		if holds {
			set(kind, true, reason, message)
		} else {
			meta.RemoveStatusCondition(&s.Conditions, kind)
		}
	}
	setIf(!ready && stalled, reconcile.ConditionStalled)
	setIf(!ready && !stalled, reconcile.ConditionReconciling)
	if it.stop != nil {
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionFeasible)
		return
	}
	problems := append(append([]fleet.Condition{}, it.asked.problems...), it.result.Conditions...)
	if len(problems) == 0 {
		set(v1alpha1.ConditionFeasible, true, v1alpha1.ReasonFeasible, "")
		return
	}
	texts := make([]string, len(problems))
	for i := range problems {
		texts[i] = problems[i].Message
	}
	set(v1alpha1.ConditionFeasible, false, string(problems[0].Type), strings.Join(texts, "; "))
}

// readiness says how far the FleetPlacement is. Stalled: nothing moves without a change of what the message names.
func (it *item) readiness(s *v1alpha1.FleetPlacementStatus) (ready bool, reason, message string, stalled bool) {
	if it.stop != nil {
		return false, it.stop.reason, it.stop.message, !it.stop.waits
	}
	serving := fmt.Sprintf("%d of %d replicas are ready: %d on spot, %d on on-demand capacity",
		s.ReadyReplicas, it.asked.policy.Replicas, s.Spot.Ready, s.OnDemand.Ready)
	if found, message := it.nobody(); found != "" && it.asked.policy.Replicas > 0 {
		return false, found, message, false
	}
	moving, refused := 0, ""
	for i := range s.Members {
		if s.Members[i].State == v1alpha1.MemberMoving {
			moving++
		}
	}
	for _, sight := range it.sights {
		if sight.failed != "" && refused == "" {
			refused = fmt.Sprintf("member %s: %s", sight.member.Name, sight.failed)
		}
	}
	switch {
	case it.deleting():
		return false, v1alpha1.ReasonDeleting, it.handingBack() + serving, false
	case refused != "":
		return false, v1alpha1.ReasonWriteFailed, refused + "; " + serving, false
	case s.Unplaced > 0:
		return false, v1alpha1.ReasonIncomplete, serving + "; the condition Feasible says what is missing", false
	case moving == 0 && int(s.ReadyReplicas) >= it.asked.policy.Replicas && len(it.result.Moves) == 0:
		return true, v1alpha1.ReasonPlaced, serving, false
	case len(it.result.Moves) == 0 && len(it.result.Later) > 0:
		return false, v1alpha1.ReasonWaiting, serving + "; " + it.result.Later[0].Reason, false
	}
	return false, v1alpha1.ReasonMoving, serving, false
}

// handingBack says how far a FleetPlacement is that was deleted.
func (it *item) handingBack() string {
	text := "its members place their replicas on their own again; "
	if left := it.ungathered(); it.object.Spec.OnDelete == v1alpha1.Gather && left != "" {
		text = "its replicas are moving to one member: " + left + "; with onDelete: Keep it is deleted at once, and they stay; "
	}
	return text
}

// nobody says why no member takes part; empty: some do.
func (it *item) nobody() (reason, message string) {
	there := false
	var why []string
	for _, s := range it.sights {
		found := s.out()
		if found == "" {
			return "", ""
		}
		there = there || s.known || s.facts.exists
		if len(why) < 5 {
			why = append(why, s.member.Name+": "+found)
		}
	}
	if !there && len(it.sights) > 0 {
		return v1alpha1.ReasonTargetNotFound, fmt.Sprintf("no member has %s %s", it.object.Spec.TargetRef.Kind, it.target.key.NamespacedName)
	}
	return v1alpha1.ReasonNoMemberTakesPart, "no member's workload takes part: " + strings.Join(why, "; ")
}
