package placing

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Conditions beside those of package fleet: what is asked for and cannot be had.
const (
	selectorMatchesNothing fleet.ConditionType = "SelectorMatchesNothing"
	invalidPrice           fleet.ConditionType = "InvalidPrice"
)

// Defaults of what the definition leaves open.
const (
	defaultReplicas       = 1
	defaultSpotPercentage = 100
	defaultCooldown       = 10 * time.Second
	movesPercent          = 10 // of the replicas may be on the move at a time
)

// asked is what a FleetPlacement asks for.
type asked struct {
	policy   fleet.Policy
	domains  map[string]string     // the value of spec.spread.domainLabel by member
	prices   map[string][2]float64 // by member and capacity type
	problems []fleet.Condition
	// invalid is why nothing is done: a value of which nobody knows what it means. Empty: nothing.
	invalid string
}

// Member is a registered cluster, as far as placements look at it.
type Member struct {
	Name string
	// Labels and Annotations of its registration.
	Labels, Annotations map[string]string
	// Reachable says that it can be worked in. Since is since when it cannot.
	Reachable bool
	Since     time.Time
	// ReadOnly says that nothing is to be written there.
	ReadOnly bool
	// Cordoned says that it takes no more replicas than it has.
	Cordoned bool
}

// policyOf reads what a FleetPlacement asks for. The members are in the order of their names.
func policyOf(p *v1alpha1.FleetPlacement, members []Member, now time.Time) asked {
	spec, a := &p.Spec, asked{}
	replicas := valueOr(spec.Replicas, defaultReplicas)
	a.policy = fleet.Policy{
		Replicas: replicas, MinOnDemand: int(spec.Capacity.MinOnDemand), SpotPercentage: valueOr(spec.Capacity.SpotPercentage, defaultSpotPercentage),
		ExtraSpot: int(spec.Capacity.ExtraSpot),
		Spread:    fleet.Spread{Member: valueOr(spec.Spread.MaxPercentPerMember, 0), Domain: valueOr(spec.Spread.MaxPercentPerDomain, 0)},
		Pace:      fleet.Pace{Moves: max(replicas*movesPercent/100, 1), Cooldown: defaultCooldown},
	}
	if spec.ClusterLossGrace != nil {
		a.policy.Grace = spec.ClusterLossGrace.Duration.Duration
	}
	if spec.Pace.MaxMoves != nil {
		a.policy.Pace.Moves = int(*spec.Pace.MaxMoves)
	}
	if spec.Pace.Cooldown != nil {
		a.policy.Pace.Cooldown = spec.Pace.Cooldown.Duration.Duration
	}
	a.window(spec.Pace.Window, now)
	a.tiers(spec.Clusters, members)
	a.price(spec.Prices, members)
	if label := spec.Spread.DomainLabel; label != "" {
		a.domains = map[string]string{}
		for i := range members {
			a.domains[members[i].Name] = members[i].Labels[label]
		}
	}
	return a
}

func valueOr(value *int32, otherwise int) int {
	if value == nil {
		return otherwise
	}
	return int(*value)
}

func (a *asked) problem(t fleet.ConditionType, format string, args ...any) {
	a.problems = append(a.problems, fleet.Condition{Type: t, Message: fmt.Sprintf(format, args...)})
}

// window says whether the disruption window is shut. One that cannot be read was meant to restrict moves: it never opens.
func (a *asked) window(w *v1alpha1.Window, now time.Time) {
	if w == nil {
		return
	}
	parsed, err := policy.ParseWindow(w.Schedule, w.Duration.Duration.Duration.String(), w.TimeZone)
	if err != nil {
		a.policy.Pace.Shut = true
		a.problem(fleet.InvalidPolicy, "pace.window: %v: no ready replica moves", err)
		return
	}
	a.policy.Pace.Shut, a.policy.Pace.Changes = !parsed.Contains(now), parsed.Next(now)
}

// tiers finds the members of each tier. Without any tier all members are one.
func (a *asked) tiers(tiers []v1alpha1.Tier, members []Member) {
	if len(tiers) == 0 {
		tiers = []v1alpha1.Tier{{Members: []v1alpha1.Choice{{}}}}
	}
	chosen := map[string]bool{}
	for t := range tiers {
		var tier fleet.Tier
		for c := range tiers[t].Members {
			choice := &tiers[t].Members[c]
			path := fmt.Sprintf("clusters[%d].members[%d]", t, c)
			matches, err := matcher(&choice.Selector)
			if err != nil {
				a.invalid = fmt.Sprintf("%s.selector: %v", path, err)
				return
			}
			found := false
			for i := range members {
				if !matches.Matches(labels.Set(members[i].Labels)) {
					continue
				}
				if found = true; chosen[members[i].Name] {
					continue
				}
				chosen[members[i].Name] = true
				tier = append(tier, fleet.Choice{Member: members[i].Name, Weight: int(choice.Weight), Min: int(choice.Min), Max: valueOr(choice.Max, 0)})
			}
			if !found {
				a.problem(selectorMatchesNothing, "%s.selector matches no member", path)
			}
		}
		a.policy.Tiers = append(a.policy.Tiers, tier)
	}
}

// matcher makes a selector of which an empty one matches all.
func matcher(s *metav1.LabelSelector) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(s)
}

// price finds what replicas cost in each member. What cannot be read counts as not known.
func (a *asked) price(prices []v1alpha1.Price, members []Member) {
	a.prices = map[string][2]float64{}
	selectors := make([]labels.Selector, len(prices))
	for i := range prices {
		var err error
		if selectors[i], err = matcher(&prices[i].Selector); err != nil {
			a.invalid = cmp.Or(a.invalid, fmt.Sprintf("prices[%d].selector: %v", i, err))
			selectors[i] = labels.Nothing()
		}
	}
	for i := range members {
		m := &members[i]
		if found, ok := a.placementPrice(prices, selectors, m); ok {
			a.prices[m.Name] = found
			continue
		}
		var both [2]float64
		for capacity, key := range [...]string{fleet.Spot: v1alpha1.AnnotationSpotPrice, fleet.OnDemand: v1alpha1.AnnotationOnDemandPrice} {
			text, set := m.Annotations[key]
			if !set {
				continue
			}
			value, ok := priceIn(text)
			if !ok {
				a.problem(invalidPrice, "member %s: annotation %s: %.32q: must be a number above zero; the price counts as unknown", m.Name, key, text)
			}
			both[capacity] = value
		}
		if (both[0] > 0) != (both[1] > 0) { // one alone says nothing
			both = [2]float64{}
		}
		a.prices[m.Name] = both
	}
}

// placementPrice returns the first of prices whose selector matches a member.
func (a *asked) placementPrice(prices []v1alpha1.Price, selectors []labels.Selector, m *Member) (both [2]float64, found bool) {
	for i := range prices {
		if !selectors[i].Matches(labels.Set(m.Labels)) {
			continue
		}
		spotPrice, good := priceIn(string(prices[i].Spot))
		onDemand, goodToo := priceIn(string(prices[i].OnDemand))
		if !good || !goodToo {
			a.problem(invalidPrice, "prices[%d]: %.32q and %.32q: must be numbers above zero; the price of member %s counts as unknown", i, prices[i].Spot, prices[i].OnDemand, m.Name)
			return both, true
		}
		return [2]float64{spotPrice, onDemand}, true
	}
	return both, false
}

// priceIn reads a price; zero and below are none.
func priceIn(text string) (float64, bool) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value > 0) || value > 1e9 {
		return 0, false
	}
	return value, true
}
