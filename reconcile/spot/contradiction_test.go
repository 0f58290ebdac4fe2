package spot

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

const testSteer = "karpenter.sh/capacity-type"

func testCapacity(t testing.TB) capacity.Labels {
	t.Helper()
	c, err := capacity.NewLabels()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// twoOfEach has two spot nodes without and two on-demand nodes with local disks.
func twoOfEach() *nodes.Table {
	t := nodes.NewTable()
	for name, labels := range map[string]map[string]string{
		"s1": {testSteer: "spot", "zone": "a", "cpus": "8"}, "s2": {testSteer: "spot", "zone": "b", "cpus": "16"},
		"o1": {testSteer: "on-demand", "zone": "a", "disk": "local", "cpus": "8"}, "o2": {testSteer: "on-demand", "zone": "c", "disk": "local", "cpus": "4"},
	} {
		node := &corev1.Node{}
		node.Name, node.Labels = name, labels
		t.Set(node, &nodes.Interruptions{}, spottest.Epoch)
	}
	return t
}

func requiredAffinity(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

func expressions(list ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: list}
}

func TestATemplateContradictsACapacityTypeThatNoneOfItsNodesCanGive(t *testing.T) {
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	named := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{in("metadata.name", "o2")}}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want plan.Contradiction
	}{
		"it asks for nothing":                 {corev1.PodSpec{}, plan.ContradictionNone},
		"both types have it":                  {corev1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}, plan.ContradictionNone},
		"only on-demand nodes have it":        {corev1.PodSpec{NodeSelector: map[string]string{"disk": "local"}}, plan.ContradictionSpot},
		"only spot nodes have it":             {corev1.PodSpec{NodeSelector: map[string]string{"zone": "b"}}, plan.ContradictionOnDemand},
		"no node has it":                      {corev1.PodSpec{NodeSelector: map[string]string{"zone": "d"}}, plan.ContradictionBoth},
		"what steers is no demand of its own": {corev1.PodSpec{NodeSelector: map[string]string{testSteer: "on-demand"}}, plan.ContradictionNone},
		"values without overlap":              {corev1.PodSpec{Affinity: requiredAffinity(expressions(in("zone", "c", "d")))}, plan.ContradictionSpot},
		"two demands, each of which some spot node meets": {corev1.PodSpec{NodeSelector: map[string]string{"zone": "a"}, Affinity: requiredAffinity(expressions(
			corev1.NodeSelectorRequirement{Key: "cpus", Operator: corev1.NodeSelectorOpLt, Values: []string{"9"}}))}, plan.ContradictionNone},
		"a number that is too high for spot": {corev1.PodSpec{Affinity: requiredAffinity(expressions(
			corev1.NodeSelectorRequirement{Key: "cpus", Operator: corev1.NodeSelectorOpLt, Values: []string{"8"}}))}, plan.ContradictionSpot},
		"an alternative that spot meets":    {corev1.PodSpec{Affinity: requiredAffinity(expressions(in("disk", "local")), expressions(in("zone", "b")))}, plan.ContradictionNone},
		"no alternative that spot meets":    {corev1.PodSpec{Affinity: requiredAffinity(expressions(in("disk", "local")), expressions(in("zone", "c")))}, plan.ContradictionSpot},
		"it names its node":                 {corev1.PodSpec{Affinity: requiredAffinity(named)}, plan.ContradictionSpot},
		"it must not be where spot is":      {corev1.PodSpec{Affinity: requiredAffinity(expressions(corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"a", "b"}}))}, plan.ContradictionSpot},
		"a label that only spot is without": {corev1.PodSpec{Affinity: requiredAffinity(expressions(corev1.NodeSelectorRequirement{Key: "disk", Operator: corev1.NodeSelectorOpExists}))}, plan.ContradictionSpot},
	} {
		capacityType := testCapacity(t)
		needs := capacity.NodeRequirementsOf(capacity.RequirementsOf(&c.spec, "shop", "", capacityType))
		var memo nodes.ContradictionMemo
		if got, _ := twoOfEach().Contradiction(asks(needs), &memo, capacityType, spottest.Epoch); got != c.want {
			t.Errorf("%s: %q, want %q (needs %v)", name, got, c.want, needs)
		}
	}
}

func TestAContradictionEndsWithTheFirstNodeThatFits(t *testing.T) {
	table, capacityType := twoOfEach(), testCapacity(t)
	needs := capacity.NodeRequirementsOf(capacity.RequirementsOf(&corev1.PodSpec{NodeSelector: map[string]string{"disk": "local"}}, "shop", "", capacityType))
	var memo nodes.ContradictionMemo
	if got, since := table.Contradiction(asks(needs), &memo, capacityType, spottest.Epoch); got != plan.ContradictionSpot || !since.Equal(spottest.Epoch) {
		t.Fatalf("%q since %s", got, since)
	}
	another := &corev1.Node{}
	another.Name, another.Labels = "o3", map[string]string{testSteer: "on-demand", "disk": "local"}
	table.Set(another, &nodes.Interruptions{}, spottest.Epoch)
	if got, since := table.Contradiction(asks(needs), &memo, capacityType, spottest.Epoch.Add(time.Hour)); got != plan.ContradictionSpot || !since.Equal(spottest.Epoch) {
		t.Errorf("%q since %s: it has stood since %s", got, since, spottest.Epoch)
	}
	fits := &corev1.Node{}
	fits.Name, fits.Labels = "s3", map[string]string{testSteer: "spot", "disk": "local"}
	table.Set(fits, &nodes.Interruptions{}, spottest.Epoch)
	if got, _ := table.Contradiction(asks(needs), &memo, capacityType, spottest.Epoch); got != plan.ContradictionNone {
		t.Errorf("%q, though a spot node fits", got)
	}
	table.Remove("s3", spottest.Epoch)
	if got, _ := table.Contradiction(asks(needs), &memo, capacityType, spottest.Epoch); got != plan.ContradictionSpot {
		t.Errorf("%q, though no spot node fits any more", got)
	}
}

func TestNothingIsKnownOfNodesThatAreStillToCome(t *testing.T) {
	capacityType := testCapacity(t)
	needs := capacity.NodeRequirementsOf(capacity.RequirementsOf(&corev1.PodSpec{NodeSelector: map[string]string{"disk": "local"}}, "shop", "", capacityType))
	made := twoOfEach()
	node := &corev1.Node{}
	node.Name, node.Labels = "s9", map[string]string{testSteer: "spot", "karpenter.sh/nodepool": "general"}
	made.Set(node, &nodes.Interruptions{}, spottest.Epoch)
	var memo nodes.ContradictionMemo
	if got, _ := made.Contradiction(asks(needs), &memo, capacityType, spottest.Epoch); got != plan.ContradictionNone {
		t.Errorf("%q where Karpenter makes nodes to measure", got)
	}
	none := twoOfEach()
	none.Remove("s1", spottest.Epoch)
	none.Remove("s2", spottest.Epoch)
	if got, _ := none.Contradiction(asks(needs), new(nodes.ContradictionMemo), capacityType, spottest.Epoch); got != plan.ContradictionNone {
		t.Errorf("%q where there is no spot node at all", got)
	}
}

func TestAnAdmissionLearnsOfAContradictionWithoutAllocating(t *testing.T) {
	table, capacityType, memo := twoOfEach(), testCapacity(t), new(nodes.ContradictionMemo)
	needs := capacity.NodeRequirementsOf(capacity.RequirementsOf(&corev1.PodSpec{NodeSelector: map[string]string{"disk": "local"}}, "shop", "", capacityType))
	table.Contradiction(asks(needs), memo, capacityType, spottest.Epoch)
	if n := testing.AllocsPerRun(100, func() { table.Contradiction(asks(needs), memo, capacityType, spottest.Epoch) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestEachContradictionIsOneWarningThatSaysWhatFollows(t *testing.T) {
	for c, follows := range map[plan.Contradiction]string{
		plan.ContradictionSpot:     "placed on-demand",
		plan.ContradictionOnDemand: "that belong on-demand wait",
		plan.ContradictionBoth:     "New replicas wait",
	} {
		view := &report.Workload{State: plan.StateWaiting, Contradiction: c}
		for _, known := range []bool{false, true} { // what a person has to fix is said after a restart, too
			all := report.Announcements(&report.Workload{State: plan.StateWaiting}, known, view)
			if len(all) != 1 || !all[0].Warning || all[0].Reason != "Contradiction" || !strings.Contains(all[0].Message, follows) {
				t.Errorf("%q: %+v", c, all)
			}
		}
		if again := report.Announcements(view, true, view); len(again) > 0 {
			t.Errorf("%q is reported again: %+v", c, again)
		}
	}
}

// asks is a template that has been parsed.
func asks(needs capacity.NodeRequirements) func() capacity.NodeRequirements {
	return func() capacity.NodeRequirements { return needs }
}
