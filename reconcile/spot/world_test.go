package spot

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// world is a tiny cluster with one ReplicaSet or StatefulSet: the truth, a cache that lags behind it, and the core that
// acts on what the cache shows. Randomness comes from a seed, so that a failure can be repeated.
type world struct {
	rand     *rand.Rand
	now      time.Time
	version  uint64
	ordinals bool
	wanted   int
	policy   policy.Policy
	settings plan.Settings

	pods   map[types.UID]*plan.Pod // the truth
	events []event                 // not yet delivered
	cache  map[types.UID]plan.Pod
	known  int // replicas that the cache shows
	acc    *Accounting

	stored []*plan.Pod // admitted, and not stored yet

	lag      time.Duration // that the last pass let the cache have
	storing  bool          // whether pods take a time from their admission until they are stored
	refuse   float64       // chance that a pod is refused after its admission
	lose     float64       // chance that an admission's answer is lost and the pod is let through as it is
	live     bool          // whether doubts are settled by a live list; else they are decided at once
	lastMove time.Time

	admitted, evictions int
	broken              []string // evictions of ours that broke the floor
}

type event struct {
	at   time.Time
	pod  plan.Pod
	gone bool
	size int // of the owner, if not negative
}

func newWorld(seed uint64, wanted int, pol policy.Policy) *world {
	w := &world{rand: rand.New(rand.NewPCG(seed, 1)), now: spottest.Epoch, wanted: wanted, known: wanted, policy: pol,
		settings: plan.Settings{MaxMoves: policy.MoveLimit{Percent: 10}, Cooldown: 10 * time.Second}, pods: map[types.UID]*plan.Pod{}}
	w.restart()
	return w
}

// restart forgets everything but what a fresh list shows.
func (w *world) restart() {
	w.events, w.cache, w.known = nil, map[types.UID]plan.Pod{}, w.wanted
	w.acc, w.lastMove = NewAccounting(w.ordinals), time.Time{}
	for _, p := range w.sorted() {
		if p.Slot != plan.NoSlot {
			w.cache[p.UID] = *p
			w.acc.Observe(p, w.now)
		}
	}
}

func (w *world) sorted() []*plan.Pod {
	pods := make([]*plan.Pod, 0, len(w.pods))
	for _, p := range w.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *plan.Pod) int { return cmp.Compare(a.UID, b.UID) })
	return pods
}

func (w *world) alive() []*plan.Pod {
	return slices.DeleteFunc(w.sorted(), func(p *plan.Pod) bool { return !p.Alive() })
}

func (w *world) count() (t capacity.Tally) {
	for _, p := range w.pods {
		if p.Alive() {
			t.Add(p.Capacity, 1)
		}
	}
	return t
}

func (w *world) mix() policy.Mix { return w.policy.Mix() }

// write stores a pod; the cache selects by the slot label.
func (w *world) write(p *plan.Pod) {
	w.version++
	p.Version = w.version
	if p.Slot == plan.NoSlot {
		w.events = append(w.events, event{at: w.now, pod: *p, gone: true, size: -1})
		return
	}
	w.events = append(w.events, event{at: w.now, pod: *p, size: -1})
}

func (w *world) remove(p *plan.Pod) {
	delete(w.pods, p.UID)
	w.version++
	p.Version = w.version
	w.events = append(w.events, event{at: w.now, pod: *p, gone: true, size: -1})
}

func (w *world) scale(n int) {
	w.wanted = n
	w.events = append(w.events, event{at: w.now, size: n})
}

// deliver shows the cache the next n events.
func (w *world) deliver(n int) {
	for ; n > 0 && len(w.events) > 0; n-- {
		e := w.events[0]
		w.events = w.events[1:]
		switch {
		case e.size >= 0:
			w.known = e.size
		case e.gone:
			delete(w.cache, e.pod.UID)
			w.acc.Gone(e.pod.UID, e.pod.Version, w.now)
		default:
			w.cache[e.pod.UID] = e.pod
			w.acc.Observe(&e.pod, w.now)
		}
	}
}

// pass lets time go by; what happened longer ago than lag is seen.
func (w *world) pass(d, lag time.Duration) {
	w.now, w.lag = w.now.Add(d), lag
	w.store()
	for len(w.events) > 0 && w.now.Sub(w.events[0].at) > lag {
		w.deliver(1)
	}
}

// control does what the owner's controller does: it makes missing pods and takes away those too many.
func (w *world) control() {
	alive := w.alive()
	if w.ordinals {
		w.controlOrdinals(alive)
		return
	}
	for n := w.wanted - len(alive); n > 0; n-- {
		w.create("")
	}
	if over := len(alive) - w.wanted; over > 0 {
		slices.SortFunc(alive, plantest.DeletedFirst)
		for _, p := range alive[:over] {
			w.remove(p)
		}
	}
}

func (w *world) controlOrdinals(alive []*plan.Pod) {
	have := map[int]bool{}
	for _, p := range alive {
		number, _ := phrase.Ordinal(p.Name)
		have[number] = true
		if number >= w.wanted {
			w.remove(p)
		}
	}
	for number := range w.wanted {
		if !have[number] {
			w.create(fmt.Sprintf("db-%d", number))
		}
	}
}

// create admits a pod and stores it, unless it is refused in between.
func (w *world) create(name string) {
	w.admitted++
	id := types.UID(fmt.Sprintf("pod-%05d", w.admitted))
	if name == "" {
		name = string(id)
	}
	ask := Ask{ID: fmt.Sprintf("request-%05d", w.admitted), Wanted: w.known, Mix: w.mix()}
	ask.Ordinal, _ = phrase.Ordinal(name)
	answer := w.acc.Reserve(ask, w.now)
	if answer.Doubt != DoubtNone {
		if w.live {
			if answer.Doubt == DoubtUnproven {
				w.pass(max(w.acc.ProvenBy().Sub(w.now), 0), w.lag)
			}
			var pods []plan.Pod
			for _, p := range w.sorted() {
				pods = append(pods, *p)
			}
			w.acc.Sync(pods, w.now, w.now)
		}
		ask.Wanted, ask.Final = w.wanted, true
		answer = w.acc.Reserve(ask, w.now)
	}
	if w.rand.Float64() < 0.05 {
		if again := w.acc.Reserve(ask, w.now); again.Reservation != answer.Reservation {
			panic(fmt.Sprintf("%s was answered %+v, then %+v", ask.ID, answer, again))
		}
	}
	if w.rand.Float64() < w.refuse {
		return
	}
	p := &plan.Pod{Name: name, UID: id, Owner: spottest.OwnerUID, Slot: answer.Slot, Capacity: answer.Capacity, Reservation: answer.ID,
		Moved: answer.Moved, Created: w.now.Truncate(time.Second), UnreadySince: w.now.Truncate(time.Second)}
	if !w.ordinals && answer.Capacity != capacity.Unknown {
		p.DeletionCost = w.mix().Cost(answer.Slot)
	}
	if w.rand.Float64() < w.lose {
		p.Slot, p.Capacity, p.Reservation, p.DeletionCost = plan.NoSlot, capacity.Unknown, "", ""
	}
	if w.storing {
		w.stored = append(w.stored, p)
		return
	}
	w.pods[id] = p
	w.write(p)
}

// store stores pods that were admitted, each after a time of its own.
func (w *world) store() {
	w.stored = slices.DeleteFunc(w.stored, func(p *plan.Pod) bool {
		if w.now.Sub(p.Created) < StoreTime && w.rand.IntN(2) == 0 {
			return false
		}
		w.pods[p.UID] = p
		w.write(p)
		return true
	})
}

// start makes up to n pods ready, in random order.
func (w *world) start(n int) {
	pods := slices.DeleteFunc(w.alive(), func(p *plan.Pod) bool { return p.Ready })
	w.rand.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	for _, p := range pods[:min(n, len(pods))] {
		p.Ready, p.Bound = true, true
		if p.Capacity == capacity.Unknown {
			p.Capacity = []capacity.Type{capacity.Spot, capacity.OnDemand}[w.rand.IntN(2)] // wherever there is room
		}
		w.write(p)
	}
}

// kill evicts a random pod behind our back.
func (w *world) kill() {
	if pods := w.alive(); len(pods) > 0 {
		w.remove(pods[w.rand.IntN(len(pods))])
	}
}

func (w *world) observed() plan.Observed {
	o := plan.Observed{Ordinals: w.ordinals, Replicas: w.known, LastMove: w.lastMove,
		Owners: []plan.Owner{{UID: spottest.OwnerUID, Name: "owner", Replicas: w.known, Accounting: w.acc.Summary(w.known, w.now)}}}
	for _, p := range w.cache {
		if known := w.acc.pods[p.UID]; known != nil && known.freed {
			p.Evicted = true
		}
		o.Pods = append(o.Pods, p)
	}
	for _, p := range w.pods { // what a live list finds
		if p.Slot == plan.NoSlot {
			o.Pods = append(o.Pods, *p)
		}
	}
	slices.SortFunc(o.Pods, byAgeOf)
	w.rand.Shuffle(len(o.Pods), func(i, j int) { o.Pods[i], o.Pods[j] = o.Pods[j], o.Pods[i] })
	return o
}

func (w *world) plan() plan.Result { return plan.Plan(w.observed(), w.policy, w.settings, w.now) }

// act plans and does what the plan says. refused is the chance that a disruption budget refuses an eviction.
func (w *world) act(refused float64) plan.Result {
	r := w.plan()
	for _, s := range r.Stamps {
		if p := w.pods[s.Pod]; p != nil {
			p.Slot = s.Slot
			if s.DeletionCost != "" {
				p.DeletionCost = s.DeletionCost
			}
			w.write(p)
		}
	}
	for _, e := range r.Evictions {
		if !w.acc.Free(e.Pod, w.now) {
			continue
		}
		p := w.pods[e.Pod]
		if p == nil {
			continue
		}
		if w.rand.Float64() < refused {
			w.acc.Restore(e.Pod)
			continue
		}
		w.evictions++
		w.lastMove = w.now
		w.remove(p)
		if left := w.count().OnDemand; p.Capacity == capacity.OnDemand && left < w.mix().Floor {
			w.broken = append(w.broken, fmt.Sprintf("%s evicted, %d on-demand are left", p.Name, left))
		}
	}
	return r
}

// converge lets everything settle and acts until nothing is left to do; it returns how long that took.
func (w *world) converge() (time.Duration, error) {
	start := w.now
	w.refuse = 0
	var r plan.Result
	for range 2000 {
		w.control()
		w.start(len(w.pods))
		w.deliver(len(w.events))
		r = w.act(0)
		if r.State == plan.StateConverged && len(w.events) == 0 {
			return w.now.Sub(start), nil
		}
		w.pass(time.Second, 0)
	}
	return 0, fmt.Errorf("not converged: %s: %s", r.State, r.Reason)
}

func byAgeOf(a, b plan.Pod) int { return plan.ByAge(&a, &b) }

// consistent compares what the accounting counts with what it keeps.
func (w *world) consistent() error {
	a := w.acc
	var visible, reserved, lost capacity.Tally
	holders := map[int]int{}
	for _, s := range a.pods {
		if s.holds() {
			visible.Add(s.capacity, 1)
			holders[s.slot]++
		}
	}
	for id, at := range a.promised.byID {
		switch r := a.promised.at(at); {
		case r.id != id:
			return fmt.Errorf("reservation %x is kept as %x", r.id, id)
		case r.lost:
			lost.Add(r.capacity.Type(), 1)
		default:
			reserved.Add(r.capacity.Type(), 1)
			holders[int(r.slot)]++
		}
	}
	for _, capacityType := range capacity.Types {
		oldest := a.waiting.first
		for oldest != 0 && a.promised.at(oldest).capacity != capacity.CodeOf(capacityType) {
			oldest = a.promised.at(oldest).links[inAll].next
		}
		if a.waitingFor[capacity.CodeOf(capacityType)].first != oldest {
			return fmt.Errorf("the oldest reservation of type %q is not the first", capacityType)
		}
	}
	if visible != a.visible || reserved != a.reserved || lost != a.lost {
		return fmt.Errorf("counts %+v %+v %+v, kept are %+v %+v %+v", a.visible, a.reserved, a.lost, visible, reserved, lost)
	}
	for slot := range a.slots.holders {
		if a.slots.count(slot) != holders[slot] {
			return fmt.Errorf("slot %d: %d holders counted, %d kept", slot, a.slots.count(slot), holders[slot])
		}
	}
	return nil
}

// exact tells what differs from the formula: counts, slots and their types.
func (w *world) exact() error {
	have, m := w.count(), w.mix()
	if have.Spot != m.Spot(w.wanted) || have.OnDemand != m.OnDemand(w.wanted) {
		return fmt.Errorf("%d spot and %d on-demand of %d, want %d and %d", have.Spot, have.OnDemand, w.wanted, m.Spot(w.wanted), m.OnDemand(w.wanted))
	}
	if w.ordinals {
		return nil
	}
	seen := map[int]bool{}
	for _, p := range w.alive() {
		if p.Slot < 0 || p.Slot >= w.wanted || seen[p.Slot] || m.Of(p.Slot) != p.Capacity || p.DeletionCost != m.Cost(p.Slot) {
			return fmt.Errorf("pod %s of %s has slot %d (a %s slot), cost %s", p.Name, p.Capacity, p.Slot, m.Of(p.Slot), p.DeletionCost)
		}
		seen[p.Slot] = true
	}
	return nil
}

// floorStands is the invariant: an owner that has all its replicas has its floor, if it ever had it.
func (w *world) floorStands() error {
	have := w.count()
	if have.All == w.wanted && have.OnDemand < min(w.mix().Floor, w.wanted) {
		return fmt.Errorf("complete with %d on-demand replicas, the floor is %d", have.OnDemand, w.mix().Floor)
	}
	return nil
}
