package lists

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// A list asks each replica for a few items, and each has that paid.
func TestAFilterIsNeverPaidForMoreThanTwice(t *testing.T) {
	filter, err := ObjectFilters.Compile("object.attempts > 1")
	if err != nil {
		t.Fatal(err)
	}
	var paid uint64
	filter.ChargeTo(func(cost uint64) error {
		paid += cost
		return nil
	})
	for n := range 1000 {
		if _, _, err := filter.Passes(t.Context(), &plimsollv1.ObjectState{Attempts: 2}); err != nil {
			t.Fatal(err)
		}
		if spent := filter.Spent(); paid < spent || paid > 2*spent {
			t.Fatalf("after %d items %d is spent and %d paid", n+1, spent, paid)
		}
	}
}

// A watch lasts: its filter sees the time at which it looks at an item, and not that at which the watch began.
func TestTheFilterOfAWatchSeesTheTimeOfTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		filter, err := ObjectFilters.Compile(`now - object.failing_since > duration("1h")`)
		if err != nil {
			t.Fatal(err)
		}
		object := &plimsollv1.ObjectState{FailingSince: timestamppb.Now()}
		for _, want := range []bool{false, true} {
			filter.Refill()
			if passes, ok, err := filter.Passes(t.Context(), object); passes != want || !ok || err != nil {
				t.Errorf("%v, %v, %v, want %v", passes, ok, err, want)
			}
			time.Sleep(2 * time.Hour)
		}
	})
}

// A filter has room for a hundred mistakes, each of which quotes it.
func TestOnlyTheFirstMistakesOfAFilterAreReported(t *testing.T) {
	_, err := ObjectFilters.Compile(strings.Repeat("object.x || ", 100) + "true")
	if err == nil || strings.Count(err.Error(), "undefined field") != maxFilterErrors {
		t.Errorf("want %d mistakes: %v", maxFilterErrors, err)
	}
}

// largePlacement has 200 members.
func largePlacement() *plimsollv1.FleetPlacement {
	p := &plimsollv1.FleetPlacement{Namespace: "shop", Name: "cart", Policy: &plimsollv1.FleetPolicy{}}
	for i := range 200 {
		p.Members = append(p.Members, &plimsollv1.FleetMember{Name: fmt.Sprintf("member-%03d", i), Tier: 1})
	}
	return p
}

// What such a comparison walks through would be found out by doing so.
func TestFiltersCompareNothingOfWhichNobodyKnowsHowLargeItIs(t *testing.T) {
	for _, text := range []string{
		"placement == placement",
		"placement.members.all(a, placement.members.all(b, placement == placement))",
		"placement.policy != placement.policy",
		"dyn(placement) == dyn(placement)",
		"placement in [placement]",
		"dyn(placement) in [dyn(placement)]",
		"placement.members[0] in placement.members",
		"placement.members == placement.members",
		"[placement] == [placement]",
		"{'a': placement} == {'a': placement}",
		"(has(placement.policy) ? null : placement) == placement",
		"plimsoll.v1.FleetPlacement{name: 'x'} == placement",
		"[dyn(1)].map(a, dyn([a, a])).map(a, dyn([a, a])).all(x, x == x)",
		"[1].map(a, [a, a]).map(a, [a, a]).all(x, x == x)",
	} {
		_, err := FleetFilters.Compile(text)
		if err == nil || !strings.Contains(err.Error(), "one side must be a single value") || !strings.Contains(err.Error(), "line 1, column") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFiltersCompareSingleValuesAndWhatIsWrittenOut(t *testing.T) {
	p := largePlacement()
	for text, want := range map[string]bool{
		`placement.name == "cart" && "shop" == placement.namespace`:   true,
		`placement.name in ["cart", "web"]`:                           true,
		`dyn(placement.name) == "cart"`:                               true,
		`placement.target == null`:                                    false, // a message that is not set is an empty one
		`placement.members != []`:                                     true,
		`[placement.name, placement.namespace] == ["cart", "shop"]`:   true,
		`placement.name in placement.members.map(m, m.name)`:          false,
		`placement.members.exists_one(m, m.name == "member-007")`:     true,
		`placement.members.exists(m, m.name in {"member-007": true})`: true,
		`{"a": placement.name} == {"a": "cart"}`:                      true,
		`type(placement.name) == string`:                              true,
		`placement.created_at == now`:                                 false,
	} {
		filter, err := FleetFilters.Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if passes, ok, err := filter.Passes(t.Context(), p); passes != want || !ok || err != nil {
			t.Errorf("%s: %v, %v, %v, want %v", text, passes, ok, err, want)
		}
	}
}

// What looks through all members costs at least one unit for each.
func TestALookThroughAllMembersCostsAsMuchAsThereAre(t *testing.T) {
	for _, text := range []string{
		`placement.members.all(m, m.name != "x")`,
		`(placement.members + placement.members).size() > 0`,
		`!("x" in placement.members.map(m, m.name))`,
	} {
		spent := func(members int) uint64 {
			p := largePlacement()
			p.Members = p.Members[:members]
			filter, err := FleetFilters.Compile(text)
			if err != nil {
				t.Fatal(text, err)
			}
			if passes, ok, err := filter.Passes(t.Context(), p); !passes || !ok || err != nil {
				t.Errorf("%s: %v, %v, %v", text, passes, ok, err)
			}
			return filter.Spent()
		}
		if few, all := spent(20), spent(200); all < 200 || all < 5*few {
			t.Errorf("%s: %d for 20 members and %d for 200", text, few, all)
		}
	}
}

// Each step doubles the list: what looks through it at the end would take a second, and cost the same as ever until then.
func TestAListThatIsJoinedWithItselfCostsItsLength(t *testing.T) {
	filter, err := FleetFilters.Compile("[[1]]" + strings.Repeat(".map(a, a + a)", 22) + ".all(x, !(2 in x))")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = filter.Passes(t.Context(), largePlacement())
	if err == nil || !strings.Contains(err.Error(), "costs too much") || filter.Spent() > 3*maxItemCost {
		t.Errorf("%d is spent: %v", filter.Spent(), err)
	}
}
