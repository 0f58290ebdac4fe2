package placing

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// Several members under the real fleet.Plan, spot.Plan and trackers of shortages together: whatever happens, the hub takes no replica away that is
// needed, and when the trouble is over everything is as planned and nothing is written any more.
func TestFleetAndMembersTogetherKeepTheFloorAndComeToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkJointly(t, false) })
}

// The same with a StatefulSet in each member, which gives up its highest ordinals whatever they run on.
func TestFleetAndMembersWithOrdinalsKeepTheFloorAndComeToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkJointly(t, true) })
}

func checkJointly(t *rapid.T, ordinals bool) {
	h := newJointHub(rapid.IntRange(2, 4).Draw(t, "members"), ordinals)
	h.lag = rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Second, 20 * time.Second}).Draw(t, "lag")
	for _, m := range h.members {
		m.budget = rapid.Bool().Draw(t, "budget")
	}
	drawJointPolicy(t, h)
	member := func(t *rapid.T) *jointMember { return h.members[rapid.IntRange(0, len(h.members)-1).Draw(t, "member")] }
	t.Repeat(map[string]func(*rapid.T){
		"": func(t *rapid.T) {
			h.tick(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
			if len(h.broken) > 0 {
				t.Fatal(h.broken[0])
			}
		},
		"wait": func(t *rapid.T) {
			for range rapid.IntRange(1, 40).Draw(t, "ticks") {
				h.tick(5 * time.Second)
			}
		},
		"drought": func(t *rapid.T) {
			notice := time.Duration(rapid.SampledFrom([]int{0, 30, 120}).Draw(t, "notice")) * time.Second
			member(t).setRoom(capacity.Spot, rapid.IntRange(0, 6).Draw(t, "room"), notice)
		},
		"on-demand drought": func(t *rapid.T) {
			member(t).setRoom(capacity.OnDemand, rapid.SampledFrom([]int{0, 1, 3, plenty}).Draw(t, "room"), 0)
		},
		"lose a pod": func(t *rapid.T) {
			m := member(t)
			if pods := m.sorted(); len(pods) > 0 {
				m.gone(pods[rapid.IntRange(0, len(pods)-1).Draw(t, "pod")])
			}
		},
		"away": func(t *rapid.T) {
			if m := member(t); m.away.IsZero() {
				m.away = h.now
			}
		},
		"back": func(t *rapid.T) { h.back(member(t)) },
		"lose all": func(t *rapid.T) {
			m := member(t)
			for _, p := range m.sorted() {
				m.gone(p)
			}
			m.away = h.now
		},
		"scale":   func(t *rapid.T) { h.policy.Replicas = rapid.IntRange(0, 12).Draw(t, "replicas") },
		"policy":  func(t *rapid.T) { drawJointPolicy(t, h) },
		"restart": func(*rapid.T) { h.restart() },
	})
	h.calm()
	h.rest(t)
	h.tick(24 * time.Hour) // what extra replicas are worth, and where, follows how long spot has held
	h.rest(t)
	h.writes = 0
	for rests := 0; rests < 100; rests++ {
		insurance := h.result.Insurance
		h.tick(5 * time.Second)
		if h.result.Insurance < insurance { // spot has held that long by now; it happens once for each extra replica
			h.rest(t)
			rests, h.writes = 0, 0
		}
		if h.writes > 0 || !h.atRest() {
			h.explain(t)
			t.Fatalf("%d writes at rest", h.writes)
		}
	}
}

// rest goes on until everything is as planned for some time: the hub may see what is there later than we do.
func (h *jointHub) rest(t *rapid.T) {
	for ticks, rests := 0, 0; ticks < 4000 && rests < 10; ticks++ {
		h.tick(5 * time.Second)
		if rests++; !h.atRest() {
			rests = 0
		}
		if len(h.broken) > 0 {
			t.Fatal(h.broken[0])
		}
	}
	if !h.atRest() {
		h.explain(t)
		t.Fatal("never at rest")
	}
}

func drawJointPolicy(t *rapid.T, h *jointHub) {
	h.policy = fleet.Policy{
		Replicas: rapid.IntRange(0, 10).Draw(t, "replicas"), MinOnDemand: rapid.IntRange(0, 4).Draw(t, "floor"),
		SpotPercentage: rapid.SampledFrom([]int{0, 50, 100, 100}).Draw(t, "percent"), ExtraSpot: rapid.IntRange(0, 2).Draw(t, "extra"),
		Tiers: make([]fleet.Tier, rapid.IntRange(1, 2).Draw(t, "tiers")), Pace: fleet.Pace{Moves: rapid.IntRange(1, 3).Draw(t, "pace"), Cooldown: 10 * time.Second},
	}
	for i, m := range h.members {
		at := i % len(h.policy.Tiers)
		h.policy.Tiers[at] = append(h.policy.Tiers[at], fleet.Choice{Member: m.name, Weight: rapid.IntRange(1, 3).Draw(t, "weight")})
	}
}

// back lets a member be in reach again. Its pods are listed again.
func (h *jointHub) back(m *jointMember) {
	if !m.away.IsZero() {
		m.away = time.Time{}
		m.restart()
	}
}

// restart starts the hub again: it knows what the status says, and what members show from now on.
func (h *jointHub) restart() {
	h.controller = &Controller{memory: map[string]*memory{}}
	h.seen, h.last = map[string][]spot.FleetView{}, map[string]spot.FleetView{}
	for _, m := range h.members {
		m.restart()
	}
}

// calm ends all trouble.
func (h *jointHub) calm() {
	for _, m := range h.members {
		h.back(m)
		m.setRoom(capacity.Spot, 20, 0)
		m.setRoom(capacity.OnDemand, plenty, 0)
	}
}

func (h *jointHub) explain(t *rapid.T) {
	t.Logf("policy %+v", h.policy)
	for _, w := range h.result.Members {
		m := h.memberOf(w.Member)
		t.Logf("%s: %+v; runs %+v, spec %d, split %+v, dry %v, last plan %s: %s", m.name, w, m.view(), m.replicas, m.split, m.droughts.All(), m.last.State, m.last.Reason)
	}
	t.Logf("moves %+v, later %+v, insurance %d, last moves %+v", h.result.Moves, h.result.Later, h.result.Insurance, h.object.Status.LastMoves)
}
