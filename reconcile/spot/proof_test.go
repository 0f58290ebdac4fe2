package spot

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// succession is a shell whose replica may or may not act on the member, and whose lists of pods can be made to fail.
type succession struct {
	*shell
	acts  atomic.Bool
	lists atomic.Int32
	fails atomic.Bool
	slow  atomic.Int64 // nanoseconds that each list takes
}

func newSuccession(t *testing.T, live ...client.Object) *succession {
	t.Helper()
	s := &succession{}
	s.shell = newShell(t, func(o *Options) { o.Acts = func(string) bool { return s.acts.Load() } }, false, live...)
	member := s.members[testMember].cluster.(*apiServer)
	member.reader = interceptor.NewClient(member.reader.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			s.lists.Add(1)
			time.Sleep(time.Duration(s.slow.Load()))
			if s.fails.Load() {
				return errors.New("the member does not answer")
			}
			return c.List(ctx, list, opts...)
		},
	})
	set := replicaSet(4, 4)
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	s.cache(namespace("true", nil), deployment(4, "true", mixed("50")), set)
	return s
}

// slotted is a pod that was admitted to a slot of the ReplicaSet.
func slotted(slot int, capacityType capacity.Type) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-1-%d", slot), UID: types.UID(fmt.Sprintf("pod-%d", slot)),
		Labels: map[string]string{"app": "web", spottest.DefaultKeys.Slot(): fmt.Sprint(slot)}, ResourceVersion: "7",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kindReplicaSet, Name: "web-1", UID: "set-web-1", Controller: new(true)}}}}
	pod.Spec.NodeSelector = map[string]string{spottest.SteerKey: string(capacityType)}
	return pod
}

func TestTheFirstPodThatASuccessorSendsToSpotRestsOnOneLiveList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The predecessor has admitted two pods that the cache does not show yet.
		s := newSuccession(t, slotted(0, capacity.OnDemand), slotted(1, capacity.Spot))
		s.acts.Store(true)
		if got := s.place(incoming(1)).Reservation; got.Capacity != capacity.OnDemand || s.lists.Load() > 0 {
			t.Errorf("on-demand needs no list: %+v after %d lists", got, s.lists.Load())
		}
		answers := make(chan plan.Reservation)
		for n := range 2 {
			go func() { answers <- s.place(incoming(2 + n)).Reservation }()
		}
		count := capacity.Tally{}
		for range 2 {
			r := <-answers
			count.Add(r.Capacity, 1)
		}
		if s.lists.Load() != 1 {
			t.Errorf("%d lists for two admissions", s.lists.Load())
		}
		if count.Spot != 1 { // of four replicas two belong on spot, and one is there
			t.Errorf("sent to spot: %d of two pods", count.Spot)
		}
	})
}

func TestAnAdmissionSecondsAfterATakeoverWaitsForAListThatIsNotThereAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSuccession(t, slotted(0, capacity.OnDemand), slotted(1, capacity.OnDemand))
		s.acts.Store(true)
		s.place(incoming(1))
		time.Sleep(3 * time.Second)
		s.slow.Store(int64(300 * time.Millisecond))
		if got := s.place(incoming(2)).Reservation; got.Capacity != capacity.Spot || s.lists.Load() != 1 {
			t.Errorf("two of four replicas are on-demand, so the third belongs on spot: %+v after %d lists", got, s.lists.Load())
		}
	})
}

func TestWhereNothingCanBeListedASuccessorSendsPodsOnDemandForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSuccession(t)
		s.acts.Store(true)
		s.fails.Store(true)
		s.place(incoming(0))
		for n := range 2 {
			if got := s.place(incoming(1 + n)); got.Reservation.Capacity != capacity.OnDemand {
				t.Errorf("pod %d: %+v", 1+n, got)
			}
		}
		if s.lists.Load() != 1 {
			t.Errorf("%d lists within a moment", s.lists.Load())
		}
		time.Sleep(plan.SettleTime)
		if got := s.place(incoming(9)); got.Reservation.Capacity != capacity.Spot {
			t.Errorf("when the cache has caught up: %+v", got)
		}
	})
}

func TestAReplicaThatLosesAMemberAndGetsItBackTrustsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSuccession(t)
		s.acts.Store(true)
		s.OwnershipChanged()
		time.Sleep(plan.SettleTime)
		s.place(incoming(0))
		if s.place(incoming(1)); s.lists.Load() > 0 {
			t.Fatal("nobody else can have decided for so long")
		}
		s.acts.Store(false)
		s.OwnershipChanged()
		s.acts.Store(true)
		if s.place(incoming(2)); s.place(incoming(3)).Outcome != OutcomeSpot || s.lists.Load() != 1 {
			t.Errorf("%d lists after it was another's for a moment", s.lists.Load())
		}
	})
}

func TestADirectoryThatReplacesAnotherTrustsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSuccession(t)
		s.options.Acts = nil
		s.follower.directory.replaces = time.Now()
		s.place(incoming(0))
		if s.place(incoming(1)); s.lists.Load() != 1 {
			t.Errorf("%d lists", s.lists.Load())
		}
	})
}

// With other credentials for another server the member is followed from the beginning, by a directory that is the first of its own.
func TestAMemberThatIsEngagedAnewTrustsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSuccession(t)
		s.acts.Store(true)
		s.OwnershipChanged()
		time.Sleep(plan.SettleTime)
		before := s.members[testMember]
		s.leave(before)
		s.members[testMember] = newMember(s.Engine, testMember, before.cluster)
		s.members[testMember].publish(before.directory.Load())
		s.place(incoming(0))
		if s.place(incoming(1)); s.lists.Load() != 1 {
			t.Errorf("%d lists, want the one on which the first pod on spot rests", s.lists.Load())
		}
	})
}

// A member takes a time for each page of a long list: until it is read pods go on-demand, for the floor's sake, and then no more.
func TestATakeoverOfAnOwnerOf20000PodsRestsOnALiveList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const replicas, extra = 20_000, 10
		s := newSuccession(t)
		s.acts.Store(true)
		set := replicaSet(replicas+extra, replicas+extra)
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		s.cache(deployment(replicas+extra, "true", spottest.Annotations("spot-percentage", "50", "min-on-demand", "5")), set)
		m := policy.Mix{Percent: 50, Floor: 5, Managed: true}
		pages := 0
		member := s.members[testMember].cluster.(*apiServer)
		member.reader = interceptor.NewClient(member.reader.(client.WithWatch), interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				var o client.ListOptions
				o.ApplyOptions(opts)
				if o.Limit == 0 {
					return errors.New("a list of all at once")
				}
				pages++
				time.Sleep(50 * time.Millisecond)
				from := 0
				_, _ = fmt.Sscan(o.Continue, &from)
				pods := list.(*corev1.PodList)
				pods.Items, pods.Continue = nil, ""
				for slot := from; slot < min(from+int(o.Limit), replicas); slot++ {
					pods.Items = append(pods.Items, *slotted(slot, m.Of(slot)))
				}
				if next := from + int(o.Limit); next < replicas {
					pods.Continue = fmt.Sprint(next)
				}
				return nil
			},
		})
		s.place(incoming(0)) // on-demand, by the lowest slot
		for n := range 4 {
			s.place(incoming(1 + n)) // the floor
		}
		start := time.Now()
		if got := s.place(incoming(5)); got.Reservation.Capacity != capacity.OnDemand || got.Reason != slots.ReasonUnproven {
			t.Errorf("while the list is read: %+v", got)
		}
		if waited := time.Since(start); waited > slots.StoreTime+liveReadTimeout {
			t.Errorf("the admission waited for %s", waited)
		}
		time.Sleep(3 * time.Second) // 40 pages take two
		if got := s.place(incoming(6)); got.Reservation.Capacity != capacity.Spot || got.Reservation.Slot < replicas {
			t.Errorf("when the list is read: %+v", got)
		}
		if pages != 40 || time.Since(start) >= plan.SettleTime {
			t.Errorf("%d pages in %s", pages, time.Since(start))
		}
	})
}
