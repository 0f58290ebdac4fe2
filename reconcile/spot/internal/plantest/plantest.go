package plantest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// PendingFor makes a pod one for which the scheduler has found no node for so long.
func PendingFor(p *plan.Pod, long time.Duration) {
	p.Bound, p.Ready, p.Moved = false, false, true
	p.Created, p.UnreadySince, p.UnschedulableSince = spottest.Epoch.Add(-long), spottest.Epoch.Add(-long), spottest.Epoch.Add(-long)
}

// DefaultSettings move a tenth of the replicas at a time.
var DefaultSettings = plan.Settings{MaxMoves: policy.MoveLimit{Percent: 10}, Cooldown: 10 * time.Second}

// Replicas returns n ready pods of one owner, on their slots under a mix, created long ago.
func Replicas(n int, m policy.Mix) []plan.Pod {
	pods := make([]plan.Pod, n)
	for i := range pods {
		pods[i] = plan.Pod{
			Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprint(i)), Owner: spottest.OwnerUID, Slot: i, Capacity: m.Of(i),
			DeletionCost: policy.ParseCost(m.Cost(i)), Created: spottest.Epoch.Add(-time.Hour), UnreadySince: spottest.Epoch.Add(-time.Hour), Bound: true, Ready: true,
		}
	}
	return pods
}

// Arrived adds n replicas that were moved to a capacity type a minute ago and are ready: the slow start of moves there is over
// for batches of up to n+1.
func Arrived(pods []plan.Pod, n int, capacityType capacity.Type) []plan.Pod {
	for slot := len(pods); n > 0; n-- {
		at := spottest.Epoch.Add(-time.Minute)
		pods = append(pods, plan.Pod{
			Name: fmt.Sprintf("web-%d", slot), UID: types.UID(fmt.Sprint(slot)), Owner: spottest.OwnerUID, Slot: slot, Capacity: capacityType,
			DeletionCost: policy.ParseCost(policy.Mix{}.Cost(slot)), Created: at, UnreadySince: at, Bound: true, Ready: true, Moved: true,
		})
		slot++
	}
	return pods
}

// ObservedOf returns a workload with one owner that wants so many replicas.
func ObservedOf(pods []plan.Pod, wanted int) plan.Observed {
	return plan.Observed{Replicas: wanted, Owners: []plan.Owner{{UID: spottest.OwnerUID, Name: "web", Replicas: wanted}}, Pods: pods}
}

// Names returns the names of the pods that are evicted.
func Names(evictions []plan.Eviction) []string {
	var list []string
	for _, e := range evictions {
		list = append(list, e.Name)
	}
	return list
}

// InterruptSlots gives the pods of some slots a node that goes.
func InterruptSlots(pods []plan.Pod, d plan.Interruption, slots ...int) []plan.Pod {
	for _, slot := range slots {
		pods[slot].Interruption = &d
	}
	return pods
}

// Purposes counts evictions and releases by what they are for.
func Purposes(r *plan.Result) map[string]int {
	n := map[string]int{}
	for _, e := range r.Evictions {
		n["evict "+string(e.For)]++
	}
	for _, e := range r.Releases {
		n["release "+string(e.Released.For)]++
	}
	return n
}

// WaitOf returns what a plan waits for of a kind, nil: nothing.
func WaitOf(r *plan.Result, kind plan.WaitKind) *plan.Wait {
	if at := slices.IndexFunc(r.Waits, func(w plan.Wait) bool { return w.Kind == kind }); at >= 0 {
		return &r.Waits[at]
	}
	return nil
}

// ThreeZones returns a spread over zones that have nodes of both types.
func ThreeZones(together bool) plan.Spread {
	s := plan.Spread{Key: corev1.LabelTopologyZone, MaxSkew: 1, MinDomains: 1, Together: together}
	for _, name := range []string{"a", "b", "c"} {
		s.Domains = append(s.Domains, plan.Domain{Name: name, Spot: true, OnDemand: true})
	}
	if !together {
		s.Apart = "c has no spot node that the template allows"
	}
	return s
}

// DeletedFirst is the order in which a ReplicaSet that shrinks takes pods away.
func DeletedFirst(a, b *plan.Pod) int {
	number := func(b bool) int { return map[bool]int{true: 1}[b] }
	return cmp.Or(number(a.Bound)-number(b.Bound), number(a.Ready)-number(b.Ready), cmp.Compare(a.DeletionCost.Number(), b.DeletionCost.Number()), plan.ByAge(b, a))
}

// Zoned puts replicas into zones, of which each letter is one.
func Zoned(pods []plan.Pod, zones string) []plan.Pod {
	for i := range pods {
		at := int32(strings.IndexByte("abc", zones[i]))
		pods[i].Node, pods[i].Domains = zones[i:i+1], []int32{at}
	}
	return pods
}

// SpreadObserved is what is seen of one owner whose pods have a spread.
func SpreadObserved(pods []plan.Pod, s plan.Spread) plan.Observed {
	o := ObservedOf(pods, len(pods))
	o.Owners[0].Spreads = []plan.Spread{s}
	return o
}
