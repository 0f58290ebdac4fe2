package plan

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

func TestVictimsComeInTheOrderThatTheirDefinitionSorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
		n, m := rapid.IntRange(0, 12).Draw(t, "pods"), spottest.DrawMix(t)
		pods := make([]Pod, n)
		for i := range pods {
			pods[i] = Pod{Name: fmt.Sprintf("db-%d", rapid.IntRange(0, 20).Draw(t, "ordinal")), UID: types.UID(fmt.Sprint(i)), Owner: spottest.OwnerUID,
				Slot: rapid.IntRange(NoSlot, 8).Draw(t, "slot"), Capacity: rapid.SampledFrom([]capacity.Type{capacity.Unknown, capacity.Spot, capacity.OnDemand}).Draw(t, "capacity"),
				Ready: !flag("unready"), Bound: !flag("unbound"), DoNotDisrupt: flag("do not disrupt"),
				Created: spottest.Epoch.Add(time.Duration(rapid.IntRange(-2, 0).Draw(t, "age")) * time.Hour)}
			if flag("advised") {
				pods[i].Interruption = &Interruption{Node: "n", Weight: WeightAdvisory}
			}
		}
		o := Observed{Replicas: n, Owners: []Owner{{UID: spottest.OwnerUID, Name: "web", Replicas: n}}, Pods: pods}
		o.Ordinals = flag("ordinals")
		policy := spottest.PolicyOf(m.Percent, m.Floor)
		pl := newPlanner(&o, &policy, Settings{}, spottest.Epoch)
		owner := &pl.owners[0]
		for i, pod := range owner.alive {
			if i%4 == 3 {
				pl.take(pod)
			}
		}
		for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
			want := slices.DeleteFunc(slices.Clone(owner.alive), func(p *Pod) bool {
				return p.Capacity != capacityType || pl.going(p)
			})
			slices.SortFunc(want, func(a, b *Pod) int {
				order := cmp.Or(compareBool(a.DoNotDisrupt, b.DoNotDisrupt), compareBool(pl.available(a), pl.available(b)), compareBool(a.Bound, b.Bound),
					compareBool(b.Advised(), a.Advised()))
				if order == 0 && !o.Ordinals {
					order = compareBool(pl.mix.Of(a.Slot) == capacityType, pl.mix.Of(b.Slot) == capacityType)
				}
				return cmp.Or(order, cmp.Compare(pl.slotOf(owner, b), pl.slotOf(owner, a)), ByAge(b, a))
			})
			if got := pl.victims(owner, capacityType); !slices.Equal(got, want) {
				t.Fatalf("%s: %v, want %v", capacityType, got, want)
			}
		}
	})
}
