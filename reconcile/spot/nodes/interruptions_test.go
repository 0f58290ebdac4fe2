package nodes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

func taintedNode(taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: taints}}
}

func conditionedNode(conditions ...corev1.NodeCondition) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: conditions}}
}

func noticeOf(in *Interruptions, node *corev1.Node) string {
	if interruption := in.Of(node, time.Now()); interruption != nil {
		return interruption.Notice
	}
	return ""
}

func TestNoticesOfEveryProviderInterruptANode(t *testing.T) {
	known, err := NewInterruptions()
	if err != nil {
		t.Fatal(err)
	}
	const noSchedule = corev1.TaintEffectNoSchedule
	now := metav1.NewTime(time.Now())
	deleted := taintedNode()
	deleted.DeletionTimestamp = &now
	for name, test := range map[string]struct {
		node *corev1.Node
		want string
	}{
		"Karpenter":                    {taintedNode(corev1.Taint{Key: "karpenter.sh/disrupted", Effect: noSchedule}), "taint karpenter.sh/disrupted"},
		"Karpenter before 1.0":         {taintedNode(corev1.Taint{Key: "karpenter.sh/disruption", Value: "disrupting", Effect: noSchedule}), "taint karpenter.sh/disruption"},
		"Karpenter's older candidates": {taintedNode(corev1.Taint{Key: "karpenter.sh/disruption", Value: "candidate", Effect: noSchedule}), ""},
		"AWS spot interruption":        {taintedNode(corev1.Taint{Key: "aws-node-termination-handler/spot-itn", Value: "evt-1"}), "taint aws-node-termination-handler/spot-itn"},
		"AWS rebalance":                {taintedNode(corev1.Taint{Key: "aws-node-termination-handler/rebalance-recommendation"}), "taint aws-node-termination-handler/rebalance-recommendation"},
		"AWS scale-in":                 {taintedNode(corev1.Taint{Key: "aws-node-termination-handler/asg-lifecycle-termination"}), "taint aws-node-termination-handler/asg-lifecycle-termination"},
		"AWS maintenance":              {taintedNode(corev1.Taint{Key: "aws-node-termination-handler/scheduled-maintenance"}), "taint aws-node-termination-handler/scheduled-maintenance"},
		"GKE":                          {taintedNode(corev1.Taint{Key: "cloud.google.com/impending-node-termination"}), "taint cloud.google.com/impending-node-termination"},
		"Azure's cloud provider":       {taintedNode(corev1.Taint{Key: "cloudprovider.azure.microsoft.com/draining", Value: "spot-eviction"}), "taint cloudprovider.azure.microsoft.com/draining"},
		"AKS":                          {conditionedNode(corev1.NodeCondition{Type: "PreemptScheduled", Status: "True"}), "condition PreemptScheduled=True"},
		"AKS, known by the reason": {
			conditionedNode(corev1.NodeCondition{Type: "VMEventScheduled", Status: "True", Reason: "PreemptScheduled"}), "condition VMEventScheduled=True"},
		"AKS, nothing scheduled":         {conditionedNode(corev1.NodeCondition{Type: "PreemptScheduled", Status: "False"}), ""},
		"AKS freeze":                     {conditionedNode(corev1.NodeCondition{Type: "VMEventScheduled", Status: "True", Reason: "FreezeScheduled"}), ""},
		"Cluster Autoscaler":             {taintedNode(corev1.Taint{Key: "ToBeDeletedByClusterAutoscaler", Value: "1700000000"}), "taint ToBeDeletedByClusterAutoscaler"},
		"Cluster Autoscaler's candidate": {taintedNode(corev1.Taint{Key: "DeletionCandidateOfClusterAutoscaler"}), ""},
		"out of service":                 {taintedNode(corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown"}), "taint node.kubernetes.io/out-of-service"},
		"the kubelet shuts down": {conditionedNode(corev1.NodeCondition{
			Type: corev1.NodeReady, Status: "False", Reason: "KubeletNotReady", Message: "[container runtime is down, node is shutting down]"}), "condition Ready=False"},
		"not ready for another reason": {conditionedNode(corev1.NodeCondition{Type: corev1.NodeReady, Status: "False", Message: "PLEG is not healthy"}), ""},
		"cannot be reached":            {taintedNode(corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}), ""},
		"cordoned":                     {taintedNode(corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: noSchedule}), ""},
		"deleted":                      {deleted, "the node is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := noticeOf(&known, test.node); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			trimmed := &corev1.Node{}
			trimmed.DeletionTimestamp = test.node.DeletionTimestamp
			known.keepSigns(test.node, trimmed)
			if got := noticeOf(&known, trimmed); got != test.want {
				t.Errorf("as it is cached: got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheConfigurationAddsNoticesAndTakesKnownOnesOut(t *testing.T) {
	table, err := NewInterruptions(
		Sign{Taint: "example.com/going", Effect: corev1.TaintEffectNoExecute},
		Sign{Taint: "karpenter.sh/disrupted", Ignore: true},
		Sign{Condition: "Interrupted", Status: corev1.ConditionUnknown, Reason: "Weather"},
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"its own taint":            {taintedNode(corev1.Taint{Key: "example.com/going", Effect: corev1.TaintEffectNoExecute}), true},
		"with another effect":      {taintedNode(corev1.Taint{Key: "example.com/going", Effect: corev1.TaintEffectNoSchedule}), false},
		"its own condition":        {conditionedNode(corev1.NodeCondition{Type: "Interrupted", Status: "Unknown", Reason: "Weather"}), true},
		"with another status":      {conditionedNode(corev1.NodeCondition{Type: "Interrupted", Status: "True", Reason: "Weather"}), false},
		"a known one taken out":    {taintedNode(corev1.Taint{Key: "karpenter.sh/disrupted"}), false},
		"a known one that is left": {taintedNode(corev1.Taint{Key: "karpenter.sh/disrupted"}, corev1.Taint{Key: "ToBeDeletedByClusterAutoscaler"}), true},
	} {
		if got := noticeOf(&table, test.node) != ""; got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestANoticeThatSaysNothingIsRefused(t *testing.T) {
	for name, sign := range map[string]Sign{
		"neither":                {},
		"both":                   {Taint: "a", Condition: "B"},
		"a taint with a reason":  {Taint: "a", Reason: "Why"},
		"a condition's effect":   {Condition: "B", Effect: corev1.TaintEffectNoExecute},
		"an unknown effect":      {Taint: "a", Effect: "Sometimes"},
		"an unknown status":      {Condition: "B", Status: "Maybe"},
		"a key that cannot be":   {Taint: "not a key"},
		"a time in the past":     {Taint: "a", Within: -time.Second},
		"a wish with a deadline": {Taint: "a", Within: time.Minute, Weight: plan.WeightAdvisory},
		"a condition of no type": {Condition: "-"},
	} {
		if _, err := NewInterruptions(sign); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func TestANodeThatStaysIsCachedWithoutWhatBeats(t *testing.T) {
	known, _ := NewInterruptions()
	node := conditionedNode(
		corev1.NodeCondition{Type: corev1.NodeReady, Status: "True", LastHeartbeatTime: metav1.Now()},
		corev1.NodeCondition{Type: "PreemptScheduled", Status: "True", LastHeartbeatTime: metav1.Now()},
	)
	node.Spec.Taints = []corev1.Taint{{Key: "example.com/dedicated", Effect: corev1.TaintEffectNoSchedule}}
	var cached corev1.Node
	known.keepSigns(node, &cached)
	if len(cached.Spec.Taints) != 0 || len(cached.Status.Conditions) != 1 || !cached.Status.Conditions[0].LastHeartbeatTime.IsZero() {
		t.Errorf("got %+v", cached)
	}
}

func TestAnInterruptionTellsWhenItWasAnnouncedAndByWhenTheNodeGoes(t *testing.T) {
	table, err := NewInterruptions(Sign{Taint: "example.com/going", Within: time.Minute}, Sign{Condition: "Going"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	early := metav1.NewTime(now.Add(-10 * time.Second))
	for name, test := range map[string]struct {
		node      *corev1.Node
		since, by time.Time
	}{
		"a taint":                    {taintedNode(corev1.Taint{Key: "example.com/going"}), now, now.Add(time.Minute)},
		"a taint with its time":      {taintedNode(corev1.Taint{Key: "example.com/going", TimeAdded: &early}), early.Time, early.Add(time.Minute)},
		"a condition, with no limit": {conditionedNode(corev1.NodeCondition{Type: "Going", Status: "True", LastTransitionTime: early}), early.Time, time.Time{}},
	} {
		if interruption := table.Of(test.node, now); interruption == nil || !interruption.Since.Equal(test.since) || !interruption.By.Equal(test.by) || interruption.Node != "n" {
			t.Errorf("%s: got %+v", name, interruption)
		}
	}
}

func TestANoticeWeighsWhatItsSignIsWorth(t *testing.T) {
	configured, err := NewInterruptions(Sign{Taint: "example.com/maybe", Weight: plan.WeightAdvisory}, Sign{Taint: "ToBeDeletedByClusterAutoscaler", Weight: plan.WeightAdvisory})
	if err != nil {
		t.Fatal(err)
	}
	karpenter, interrupted := corev1.Taint{Key: "karpenter.sh/disrupted"}, corev1.Taint{Key: "aws-node-termination-handler/spot-itn"}
	deleted := taintedNode(karpenter)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for name, c := range map[string]struct {
		in   *Interruptions
		node *corev1.Node
		want plan.Weight
	}{
		"Karpenter's taint, which may be taken off again": {&Interruptions{}, taintedNode(karpenter), plan.WeightAdvisory},
		"the node that Karpenter has deleted":             {&Interruptions{}, deleted, plan.WeightCertain},
		"a rebalance recommendation":                      {&Interruptions{}, taintedNode(corev1.Taint{Key: "aws-node-termination-handler/rebalance-recommendation"}), plan.WeightAdvisory},
		"a spot interruption":                             {&Interruptions{}, taintedNode(interrupted), plan.WeightDeadline},
		"of two notices the heavier":                      {&Interruptions{}, taintedNode(karpenter, interrupted), plan.WeightDeadline},
		"in either order":                                 {&Interruptions{}, taintedNode(interrupted, karpenter), plan.WeightDeadline},
		"Cluster Autoscaler":                              {&Interruptions{}, taintedNode(corev1.Taint{Key: "ToBeDeletedByClusterAutoscaler"}), plan.WeightCertain},
		"out of service":                                  {&Interruptions{}, taintedNode(corev1.Taint{Key: corev1.TaintNodeOutOfService}), plan.WeightDeadline},
		"a configured wish":                               {&configured, taintedNode(corev1.Taint{Key: "example.com/maybe"}), plan.WeightAdvisory},
		"a known sign that is configured to be one":       {&configured, taintedNode(corev1.Taint{Key: "ToBeDeletedByClusterAutoscaler"}), plan.WeightAdvisory},
	} {
		if interruption := c.in.Of(c.node, time.Now()); interruption == nil || interruption.EffectiveWeight() != c.want {
			t.Errorf("%s: %+v", name, interruption)
		}
	}
}
