package placing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// claim is what a member shows beyond what was set for it.
type claim struct {
	replicas       int // of the spec; pods that are missing for it may come any time
	spot, onDemand spot.FleetCount
}

// claims has c show so much more than it runs in the next round, and returns how it was.
func (y *toy) claims(c claim) (honest spot.FleetView) {
	v := y.views["c"]
	honest = *v
	v.Replicas += c.replicas
	for _, of := range []struct{ to, more *spot.FleetCount }{{&v.Spot, &c.spot}, {&v.OnDemand, &c.onDemand}} {
		of.to.Ready, of.to.Starting, of.to.Waiting = of.to.Ready+of.more.Ready, of.to.Starting+of.more.Starting, of.to.Waiting+of.more.Waiting
	}
	return honest
}

// pass makes a round while c claims more than it has, and lets members do what was decided.
func (y *toy) pass(c claim) *item {
	honest := y.claims(c)
	it := y.decide()
	*y.views["c"] = honest
	y.step(it)
	return it
}

// good is what the members that do as they are told are to have.
func good(it *item) map[string]policy.FleetSplit {
	return map[string]policy.FleetSplit{"a": it.sets["a"], "b": it.sets["b"]}
}

func TestAMemberThatClaimsASurplusAndGoesSilentTakesNothingFromOthers(t *testing.T) {
	y := newToy(t, seventy(30, 10))
	before := good(y.settle(0))
	for name, lie := range map[string]claim{
		"ready on on-demand nodes":  {replicas: 20, onDemand: spot.FleetCount{Ready: 20}},
		"ready on spot":             {replicas: 20, spot: spot.FleetCount{Ready: 20}},
		"more than can be, no pods": {replicas: math.MaxInt32},
	} {
		t.Run(name, func(t *testing.T) {
			y.t = t
			for range 5 {
				y.pass(lie)
			}
			if c := y.object.Status.Members[2]; c.Spot.Ready+c.OnDemand.Ready > 10 {
				t.Errorf("the status believes %+v", c)
			}
			y.members[2].Reachable, y.members[2].Since = false, y.now
			for range 5 {
				if diff := cmp.Diff(before, good(y.decide())); diff != "" {
					t.Errorf("the others are to have something else (-before +after):\n%s", diff)
				}
				y.now = y.now.Add(time.Second)
			}
			y.members[2].Reachable, y.members[2].Since = true, time.Time{}
			y.settle(30)
		})
	}
}

// A member that has what was set for it, but says that all of it is on on-demand nodes, leaves the floor to the others as it was.
func TestAMemberThatGoesSilentHoldsNoMoreOfTheFloorThanWasPlanned(t *testing.T) {
	y := newToy(t, seventy(30, 10))
	y.settle(0)
	v := y.views["c"]
	v.OnDemand.Ready, v.Spot.Ready = v.OnDemand.Ready+v.Spot.Ready, 0
	before := y.decide()
	planned := before.result.Members[2].OnDemand
	y.members[2].Reachable, y.members[2].Since = false, y.now
	after := y.decide()
	if r := after.placement.Running[2]; r.OnDemand.Ready != planned || r.Spot.Ready+r.OnDemand.Ready != v.OnDemand.Ready {
		t.Errorf("%+v counts, and %d were planned on on-demand", r, planned)
	}
	for _, member := range []string{"a", "b"} {
		if got, floor := after.sets[member].OnDemand, before.sets[member].OnDemand; got < floor {
			t.Errorf("%s is to have %d on-demand, and had %d", member, got, floor)
		}
	}
}

func TestAMemberThatClaimsASurplusWithoutPodsStopsNoStartsElsewhere(t *testing.T) {
	for name, lie := range map[string]claim{
		"no pods":                         {replicas: 1000},
		"pods that crash":                 {replicas: 1000, spot: spot.FleetCount{Starting: 1000}},
		"pods that crash on on-demand":    {replicas: 1000, onDemand: spot.FleetCount{Starting: 1000}},
		"pods that wait for nodes":        {replicas: 1000, spot: spot.FleetCount{Waiting: 1000}},
		"pods that nobody asked for":      {onDemand: spot.FleetCount{Ready: 1000}},
		"more than a hub can count":       {replicas: math.MaxInt32 - 1, onDemand: spot.FleetCount{Starting: math.MaxInt32}},
		"less than nothing, as if it fit": {replicas: -1000},
	} {
		t.Run(name, func(t *testing.T) {
			// The hub adopts c while it claims that, and nothing else runs.
			y := newToy(t, seventy(30, 10))
			for range 40 {
				y.pass(lie)
			}
			for _, member := range []string{"a", "b"} {
				if v := y.views[member]; v.Spot.Ready+v.OnDemand.Ready != 10 {
					t.Errorf("after it was adopted: %s runs %+v", member, v)
				}
			}
			// It claims that from some time on, and then more replicas are wanted.
			y, twin := newToy(t, seventy(30, 10)), newToy(t, seventy(30, 10))
			y.settle(0)
			twin.settle(0)
			for _, one := range []*toy{y, twin} {
				one.object.Spec.Replicas, one.object.Spec.Capacity.MinOnDemand = ptr.To(int32(60)), 30
			}
			for step := range 20 {
				if diff := cmp.Diff(good(twin.pass(claim{})), good(y.pass(lie))); diff != "" {
					t.Fatalf("step %d: the others are to have something else (-if it were honest +now):\n%s", step, diff)
				}
			}
		})
	}
}

// Whatever a member claims beyond what was set for it, the others are to have at any time what they would have if it did not.
func TestASurplusChangesNothingForOthers(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		y, twin := newToy(t, seventy(30, 10)), newToy(t, seventy(30, 10))
		y.settle(0)
		twin.settle(0)
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			if rapid.IntRange(0, 3).Draw(r, "change") == 0 {
				replicas, floor := int32(rapid.IntRange(0, 60).Draw(r, "replicas")), int32(rapid.IntRange(0, 20).Draw(r, "floor"))
				for _, one := range []*toy{y, twin} {
					one.object.Spec.Replicas, one.object.Spec.Capacity.MinOnDemand = ptr.To(replicas), floor
				}
			}
			if rapid.IntRange(0, 4).Draw(r, "reach") == 0 {
				for _, one := range []*toy{y, twin} {
					one.members[2].Reachable, one.members[2].Since = !one.members[2].Reachable, one.now
				}
			}
			lie := drawClaim(r, y.views["c"])
			if diff := cmp.Diff(good(twin.pass(claim{})), good(y.pass(lie))); diff != "" {
				r.Fatalf("the others are to have something else (-if it were honest +now):\n%s", diff)
			}
		}
	})
}

// drawClaim makes pods up. They are ready only where all others are: how far those are that were set is the member's to say.
func drawClaim(t *rapid.T, v *spot.FleetView) claim {
	n := func(what string) int { return rapid.SampledFrom([]int{0, 0, 1, 7, 1000, math.MaxInt32}).Draw(t, what) }
	c := claim{replicas: n("replicas")}
	c.spot = spot.FleetCount{Starting: n("starting"), Waiting: n("waiting")}
	if v.Spot.Starting+v.OnDemand.Starting == 0 {
		c.spot.Ready, c.onDemand.Ready = n("ready"), n("ready on on-demand")
	}
	c.onDemand.Starting, c.onDemand.Waiting = n("starting on on-demand"), n("waiting on on-demand")
	return c
}

func TestWhatIsBelievedOfAMemberOutOfReach(t *testing.T) {
	last := func(spotWanted, spotReady, onDemandWanted, onDemandReady int32) *v1alpha1.MemberStatus {
		return &v1alpha1.MemberStatus{
			Spot:     v1alpha1.Counts{Wanted: spotWanted, Running: spotReady, Ready: spotReady},
			OnDemand: v1alpha1.Counts{Wanted: onDemandWanted, Running: onDemandReady, Ready: onDemandReady},
		}
	}
	for name, test := range map[string]struct {
		last             *v1alpha1.MemberStatus
		set              *policy.FleetSplit
		onSpot, onDemand int
	}{
		"at rest":                              {last(7, 7, 3, 3), &policy.FleetSplit{Replicas: 10, OnDemand: 3}, 7, 3},
		"it moves elsewhere, and still serves": {last(0, 7, 3, 3), &policy.FleetSplit{Replicas: 10, OnDemand: 3}, 7, 3},
		"it is to have more":                   {last(9, 7, 3, 3), &policy.FleetSplit{Replicas: 12, OnDemand: 3}, 7, 3},
		"it had more than was set":             {last(7, 27, 3, 3), &policy.FleetSplit{Replicas: 10, OnDemand: 3}, 7, 3},
		"on-demand stood in for spot":          {last(7, 0, 3, 10), &policy.FleetSplit{Replicas: 10, OnDemand: 10}, 7, 3},
		"nothing was set":                      {last(5, 20, 2, 10), nil, 5, 2},
	} {
		t.Run(name, func(t *testing.T) {
			onSpot, onDemand := remembered(test.last, test.set)
			if present(onSpot) != test.onSpot || onSpot.Ready != test.onSpot || present(onDemand) != test.onDemand || onDemand.Ready != test.onDemand {
				t.Errorf("%+v and %+v, want %d and %d ready", onSpot, onDemand, test.onSpot, test.onDemand)
			}
		})
	}
}

// A StatefulSet of more replicas than there can be takes no memory for them.
func TestAStatefulSetOfAnyNumberIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		set      *policy.FleetSplit
		replicas int
		want     int
	}{
		"nothing was set":       {nil, 12, 12},
		"nothing, in a giant":   {nil, math.MaxInt32, policy.MaxSlot},
		"some are set":          {&policy.FleetSplit{Replicas: 10}, 12, 10},
		"all that there can be": {&policy.FleetSplit{Replicas: math.MaxInt32}, math.MaxInt32, policy.MaxSlot},
	} {
		t.Run(name, func(t *testing.T) {
			s := sight{member: &Member{Name: "a", Reachable: true}, known: true, set: test.set, facts: facts{asked: epoch, exists: true}, view: spot.FleetView{
				Replicas: math.MaxInt32, Ordinals: []spot.FleetOrdinal{{Number: math.MaxInt32, State: spot.FleetReady}, {Number: 0, State: spot.FleetReady}}, Spot: spot.FleetCount{Ready: 2},
			}}
			r := s.running(false, test.replicas)
			if len(r.Ordinals) != test.want || present(r.Spot)+present(r.OnDemand) != test.want || r.Spot.Ready != 1 {
				t.Errorf("%d ordinals, and %+v, %+v; want %d", len(r.Ordinals), r.Spot, r.OnDemand, test.want)
			}
		})
	}
}

func TestTotalsOfTheStatusDoNotOverflow(t *testing.T) {
	huge := countsOf(&fleet.Count{Ready: math.MaxInt32 + 7, Starting: 1}, math.MaxInt32+1)
	if huge.Wanted != math.MaxInt32 || huge.Running != math.MaxInt32 || huge.Ready != math.MaxInt32 {
		t.Errorf("%+v", huge)
	}
	total := v1alpha1.Counts{Wanted: 1, Set: 1, Running: 1, Ready: 1}
	add(&total, &v1alpha1.Counts{Wanted: math.MaxInt32, Set: math.MaxInt32, Running: math.MaxInt32, Ready: math.MaxInt32})
	if total != (v1alpha1.Counts{Wanted: math.MaxInt32, Set: math.MaxInt32, Running: math.MaxInt32, Ready: math.MaxInt32}) {
		t.Errorf("%+v", total)
	}
	split := setOf(&v1alpha1.MemberStatus{Spot: v1alpha1.Counts{Set: math.MaxInt32}, OnDemand: v1alpha1.Counts{Set: 1}})
	if split == nil || split.Replicas != math.MaxInt32+1 || split.OnDemand != 1 {
		t.Errorf("%+v", split)
	}
}

func TestWhatWasSetLatelyIsBelievedUntilItCanBeWritten(t *testing.T) {
	o, now := orders{}, epoch
	expect := func(set int, seen bool, after time.Duration, want int) {
		t.Helper()
		now = now.Add(after)
		if got := o.most(set, seen, now); got != want {
			t.Errorf("%s: %d, want %d", now.Sub(epoch), got, want)
		}
	}
	expect(9, true, 0, 9)
	expect(12, true, time.Second, 12) // more at once
	expect(10, true, 10*time.Second, 12)
	expect(7, true, 10*time.Second, 12)
	expect(7, true, orderHolds-15*time.Second, 10) // 12 is over
	expect(7, false, time.Hour, 10)                // it gets no orders while it is out of reach
	expect(7, true, 10*time.Second, 7)
	expect(8, true, time.Second, 8)
	if len(o.kept) != 1 {
		t.Errorf("%+v", o.kept)
	}
}

func TestAMemberIsBelievedToHaveWhatItWasAdoptedWithUntilItCanBeWritten(t *testing.T) {
	view := spot.FleetView{Replicas: 1000, Spot: spot.FleetCount{Ready: 1000}}
	see := func(m *memberMemory, set *policy.FleetSplit, running int32, now time.Time) int {
		s := &sight{member: &Member{Name: "a", Reachable: true}, known: true, view: view, set: set, last: &v1alpha1.MemberStatus{Spot: v1alpha1.Counts{Running: running, Ready: running}}}
		m.update(s, time.Minute, now)
		return s.limit(12)
	}
	four, m := &policy.FleetSplit{Replicas: 4}, &memberMemory{}
	for _, step := range []struct {
		what    string
		set     *policy.FleetSplit
		running int32
		after   time.Duration
		want    int
	}{
		{"before it is adopted", nil, 0, 0, 12},
		{"just adopted", four, 12, time.Second, 12},
		{"for long", four, 12, time.Second + orderHolds, 4},
	} {
		if got := see(m, step.set, step.running, epoch.Add(step.after)); got != step.want {
			t.Errorf("%s: up to %d are believed, want %d", step.what, got, step.want)
		}
	}
	// A process that has just started does not know what was set before.
	m = &memberMemory{}
	if got := see(m, four, 4, epoch); got != 1000 {
		t.Errorf("up to %d are believed at once", got)
	}
	if got := see(m, four, 4, epoch.Add(orderHolds)); got != 4 {
		t.Errorf("up to %d are believed later", got)
	}
}

// lengthyNames has a member answer with the name of an autoscaler and a selector that no API server would have sent.
func lengthyNames(b *bench, member string) {
	long, honest := strings.Repeat("a", 1<<20), b.cluster[member]
	inner := honest.Client.(client.WithWatch)
	lies := interceptor.NewClient(inner, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			list.(*autoscalingv2.HorizontalPodAutoscalerList).Items = []autoscalingv2.HorizontalPodAutoscaler{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: long},
				Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
			}}
			return nil
		},
		SubResourceGet: func(ctx context.Context, c client.Client, sub string, obj, into client.Object, o ...client.SubResourceGetOption) error {
			if err := inner.SubResource(sub).Get(ctx, obj, into, o...); err != nil {
				return err
			}
			return unstructured.SetNestedField(into.(*unstructured.Unstructured).Object, long, "status", "selector")
		},
	})
	b.cluster[member] = Connection{Client: lies, Live: lies}
}

// size of a status, in bytes.
func size(t *testing.T, s *v1alpha1.FleetPlacementStatus) int {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

func TestAMemberThatAnswersAtLengthStopsNothingInOthers(t *testing.T) {
	b := newBench(t, web(9, 3))
	b.refusesStatus = func(p *v1alpha1.FleetPlacement) error {
		for _, c := range p.Status.Conditions {
			if len(c.Message) > 32768 {
				return apierrors.NewInvalid(schema.GroupKind{Kind: v1alpha1.Kind}, p.Name, nil)
			}
		}
		return nil
	}
	lengthyNames(b, "a")
	p := b.rounds(5)
	if n := size(t, &p.Status); n >= 32<<10 {
		t.Errorf("the status has %d bytes", n)
	}
	if a := p.Status.Members[0]; a.State != v1alpha1.MemberOut || !strings.Contains(a.Reason, "HorizontalPodAutoscaler aaa") {
		t.Errorf("%.300q", a.Reason)
	}
	if b.ready() != 9 || b.views["a"].Replicas != 0 {
		t.Errorf("%+v", b.views)
	}
	// All members answer at length.
	for _, member := range []string{"b", "c"} {
		lengthyNames(b, member)
	}
	b.now = b.now.Add(time.Hour)
	if p = b.rounds(3); size(t, &p.Status) >= 32<<10 || p.Status.Members[2].State != v1alpha1.MemberOut {
		t.Errorf("%d bytes, and %s", size(t, &p.Status), p.Status.Members[2].State)
	}
}

// A selector that is too long is left out, and one of another member stands in for it.
func TestASelectorIsOneThatAWorkloadCanHave(t *testing.T) {
	for text, want := range map[string]string{
		"app=web": "app=web", strings.Repeat("a", maxSelector): strings.Repeat("a", maxSelector), strings.Repeat("a", maxSelector+1): "", "app=\nweb": "", "": "",
	} {
		if got := shortSelector(text); got != want {
			t.Errorf("%.20q: %.20q", text, got)
		}
	}
}

// What the hub cluster refuses to take in full is written with less text: only what is written down is carried out.
func TestAStatusThatIsRefusedIsWrittenWithLessText(t *testing.T) {
	for name, refusal := range map[string]error{
		"by the schema":          apierrors.NewInvalid(schema.GroupKind{Kind: v1alpha1.Kind}, "web", nil),
		"for the request":        apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		"for what etcd can take": &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "etcdserver: request is too large"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, web(9, 3))
			b.refusesStatus = func(p *v1alpha1.FleetPlacement) error {
				for _, m := range p.Status.Members {
					if len(m.Reason) > lean.reason {
						return refusal
					}
				}
				return nil
			}
			b.refuses["a"] = apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", errors.New(strings.Repeat("no; ", 1<<10)))
			p := b.rounds(40)
			if a := p.Status.Members[0]; b.ready() != 9 || b.views["a"].Replicas != 0 || !strings.HasPrefix(a.Reason, "takes no part: try to write") {
				t.Errorf("%+v, %+v", a, b.views)
			}
			// It is written when it changes, not in every round.
			version := p.ResourceVersion
			if p = b.rounds(3); p.ResourceVersion != version {
				t.Error("a status that is the same was written again")
			}
			b.refusesStatus = func(*v1alpha1.FleetPlacement) error { return refusal }
			b.ask(12)
			if b.rounds(5); b.ready() != 9 {
				t.Errorf("what is not written down was done: %+v", b.views)
			}
		})
	}
}

// An HPA finds pods by the status's selector: what fails for a moment must not take it out.
func TestAStatusThatFailsForAMomentKeepsItsTexts(t *testing.T) {
	placement := web(9, 3)
	placement.Status.Selector = "app=web"
	b := newBench(t, placement)
	b.refuses["a"] = apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", errors.New(strings.Repeat("no; ", 100)))
	failures := 0
	b.refusesStatus = func(*v1alpha1.FleetPlacement) error {
		if failures++; failures%2 == 1 {
			return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
		}
		return nil
	}
	p := b.rounds(40)
	if a := p.Status.Members[0]; failures < 2 || len(a.Reason) <= lean.reason || p.Status.Selector == "" {
		t.Errorf("%d failures, reason %q, selector %q", failures, a.Reason, p.Status.Selector)
	}
	// Nor what is refused for good.
	b.refusesStatus = func(p *v1alpha1.FleetPlacement) error {
		if len(p.Status.Members[0].Reason) > lean.reason {
			return apierrors.NewRequestEntityTooLargeError("limit is 3145728")
		}
		return nil
	}
	b.ask(12)
	if p = b.rounds(5); p.Status.Selector == "" || b.ready() != 12 {
		t.Errorf("selector %q, %d ready", p.Status.Selector, b.ready())
	}
}

// Reasons of members that are short are kept where others are not.
func TestTheStatusOfThousandsOfMembersIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, hostile := range []int{1, 100, 5000} {
		s := v1alpha1.FleetPlacementStatus{Members: make([]v1alpha1.MemberStatus, 5000), LastMoves: make([]v1alpha1.Move, keptMoves)}
		for i := range s.Members {
			s.Members[i] = v1alpha1.MemberStatus{Name: fmt.Sprint("member-", i), Tier: 1, State: v1alpha1.MemberOut, Reason: "tier 1, weight 1"}
			if i < hostile {
				s.Members[i].Reason = long
			}
		}
		for i := range s.LastMoves {
			s.LastMoves[i].Reason = long
		}
		s.Selector = long
		s.Conditions = []metav1.Condition{{Message: long}, {Message: long}}
		full.bound(&s)
		words := 0
		for i := range s.Members {
			words += len(s.Members[i].Reason)
		}
		if words > full.reasons || size(t, &s) > 1<<20 {
			t.Errorf("%d bytes of reasons in %d", words, size(t, &s))
		}
		if hostile < 5000 && s.Members[4999].Reason != "tier 1, weight 1" {
			t.Errorf("with %d members that answer at length, another has the reason %q", hostile, s.Members[4999].Reason)
		}
	}
}
