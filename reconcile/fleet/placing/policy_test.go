package placing

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

var epoch = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func inRegion(region string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}
}

func threeMembers() []Member {
	return []Member{
		{Name: "a", Labels: map[string]string{"region": "north"}, Reachable: true},
		{Name: "b", Labels: map[string]string{"region": "north"}, Reachable: true},
		{Name: "c", Labels: map[string]string{"region": "south"}, Reachable: true},
	}
}

func placementOf(spec v1alpha1.FleetPlacementSpec) *v1alpha1.FleetPlacement {
	return &v1alpha1.FleetPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}, Spec: spec}
}

func TestWithoutTiersAllMembersAreOne(t *testing.T) {
	a := policyOf(placementOf(v1alpha1.FleetPlacementSpec{}), threeMembers(), epoch)
	want := fleet.Policy{
		Replicas: 1, SpotPercentage: 100, Tiers: []fleet.Tier{{{Member: "a"}, {Member: "b"}, {Member: "c"}}},
		Pace: fleet.Pace{Moves: 1, Cooldown: 10 * time.Second},
	}
	if diff := cmp.Diff(want, a.policy); diff != "" || len(a.problems) > 0 || a.invalid != "" {
		t.Error(diff, a.problems, a.invalid)
	}
}

func TestTiersAreReadInTheirOrder(t *testing.T) {
	a := policyOf(placementOf(v1alpha1.FleetPlacementSpec{
		Replicas: ptr.To(int32(40)),
		Clusters: []v1alpha1.Tier{
			{Members: []v1alpha1.Choice{{Selector: inRegion("south"), Weight: 3, Min: 1, Max: ptr.To(int32(9))}}},
			{Members: []v1alpha1.Choice{{Selector: inRegion("north")}, {}}},
		},
		Spread: v1alpha1.Spread{MaxPercentPerMember: ptr.To(int32(50)), DomainLabel: "region", MaxPercentPerDomain: ptr.To(int32(60))},
	}), threeMembers(), epoch)
	want := []fleet.Tier{{{Member: "c", Weight: 3, Min: 1, Max: 9}}, {{Member: "a"}, {Member: "b"}}}
	if diff := cmp.Diff(want, a.policy.Tiers); diff != "" {
		t.Error(diff)
	}
	if a.domains["a"] != "north" || a.domains["c"] != "south" || a.policy.Spread != (fleet.Spread{Member: 50, Domain: 60}) || a.policy.Pace.Moves != 4 {
		t.Errorf("%+v", a)
	}
	if len(a.problems) > 0 {
		t.Error("a choice of which all members are of an earlier one matches some:", a.problems)
	}
}

// badInput are specs that the schema lets pass, or may have been stored before it had its rules.
func TestBadInputIsNamedAndTheNearestIsTaken(t *testing.T) {
	for name, test := range map[string]struct {
		spec    v1alpha1.FleetPlacementSpec
		problem fleet.ConditionType
		says    string
	}{
		"a selector that matches nothing": {
			v1alpha1.FleetPlacementSpec{Clusters: []v1alpha1.Tier{{Members: []v1alpha1.Choice{{Selector: inRegion("moon")}, {}}}}},
			selectorMatchesNothing, "clusters[0].members[0].selector",
		},
		"a price of zero":       {v1alpha1.FleetPlacementSpec{Prices: []v1alpha1.Price{{Spot: "0", OnDemand: "1"}}}, invalidPrice, `prices[0]: "0"`},
		"a price below zero":    {v1alpha1.FleetPlacementSpec{Prices: []v1alpha1.Price{{Spot: "1", OnDemand: "-3"}}}, invalidPrice, `"-3"`},
		"a price that is none":  {v1alpha1.FleetPlacementSpec{Prices: []v1alpha1.Price{{Spot: "NaN", OnDemand: "1"}}}, invalidPrice, "NaN"},
		"a window that is none": {v1alpha1.FleetPlacementSpec{Pace: v1alpha1.Pace{Window: &v1alpha1.Window{Schedule: "at night"}}}, fleet.InvalidPolicy, "pace.window"},
	} {
		t.Run(name, func(t *testing.T) {
			a := policyOf(placementOf(test.spec), threeMembers(), epoch)
			if len(a.problems) == 0 || a.problems[0].Type != test.problem || !strings.Contains(a.problems[0].Message, test.says) {
				t.Errorf("%+v, want %s that names %s", a.problems, test.problem, test.says)
			}
			if a.invalid != "" {
				t.Errorf("nothing is done: %s", a.invalid)
			}
			if test.problem == fleet.InvalidPolicy && !a.policy.Pace.Shut {
				t.Error("a window that cannot be read never opens")
			}
		})
	}
}

func TestASelectorOfNoMeaningStopsAll(t *testing.T) {
	bad := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: "Near", Values: []string{"north"}}}}
	for name, spec := range map[string]v1alpha1.FleetPlacementSpec{
		"clusters[0].members[0]": {Clusters: []v1alpha1.Tier{{Members: []v1alpha1.Choice{{Selector: bad}}}}},
		"prices[0]":              {Prices: []v1alpha1.Price{{Selector: bad, Spot: "1", OnDemand: "2"}}},
	} {
		if a := policyOf(placementOf(spec), threeMembers(), epoch); !strings.Contains(a.invalid, name) || !strings.Contains(a.invalid, "Near") {
			t.Errorf("%s: %q", name, a.invalid)
		}
	}
}

func TestPricesComeFromThePlacementThenFromTheRegistration(t *testing.T) {
	members := threeMembers()
	members[0].Annotations = map[string]string{v1alpha1.AnnotationSpotPrice: "2", v1alpha1.AnnotationOnDemandPrice: "5"}
	members[1].Annotations = map[string]string{v1alpha1.AnnotationSpotPrice: "-2", v1alpha1.AnnotationOnDemandPrice: "5"}
	members[2].Annotations = members[0].Annotations
	a := policyOf(placementOf(v1alpha1.FleetPlacementSpec{Prices: []v1alpha1.Price{{Selector: inRegion("south"), Spot: "0.5", OnDemand: "0.7"}}}), members, epoch)
	if diff := cmp.Diff(map[string][2]float64{"a": {2, 5}, "b": {}, "c": {0.5, 0.7}}, a.prices); diff != "" {
		t.Error(diff)
	}
	if len(a.problems) != 1 || !strings.Contains(a.problems[0].Message, "member b") || !strings.Contains(a.problems[0].Message, `"-2"`) {
		t.Error(a.problems)
	}
}

func TestNothingThatServesIsMovedOutsideOfTheWindow(t *testing.T) {
	window := &v1alpha1.Window{Schedule: "0 3 * * *", Duration: v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Hour}}}
	spec := v1alpha1.FleetPlacementSpec{Pace: v1alpha1.Pace{Window: window, MaxMoves: ptr.To(int32(7)), Cooldown: &v1alpha1.Duration{}}}
	a := policyOf(placementOf(spec), threeMembers(), epoch)
	if !a.policy.Pace.Shut || !a.policy.Pace.Changes.Equal(epoch.Add(15*time.Hour)) || a.policy.Pace.Moves != 7 || a.policy.Pace.Cooldown != 0 {
		t.Errorf("%+v", a.policy.Pace)
	}
	if a = policyOf(placementOf(spec), threeMembers(), epoch.Add(15*time.Hour+time.Minute)); a.policy.Pace.Shut {
		t.Error("it is shut while it is open")
	}
}
