package plan

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// Spread is a topology spread constraint of an owner's template that must hold (whenUnsatisfiable: DoNotSchedule), with the
// domains that the member's nodes form.
//
// For a pod the scheduler counts only the pods on nodes that count for it. With nodeAffinityPolicy Honor, the default, these are
// the nodes that its nodeSelector and required node affinity allow. Pods are steered by these, so each capacity type is spread on
// its own, and both together may be skewed by more than MaxSkew. With Ignore all nodes count, and the skew holds over both types.
type Spread struct {
	// Key is the topologyKey.
	Key string
	// MaxSkew is the most that a domain may have more than the one with the fewest; at least 1.
	MaxSkew int
	// MinDomains: with fewer domains the fewest counts as none.
	MinDomains int
	// Together says that pods of both capacity types are counted together.
	Together bool
	// Apart says in a part of a sentence why they are not; empty where they are.
	Apart string
	// Domains are ordered by name. Where types are counted together these are all that nodes form, else those of the nodes that
	// the template allows.
	Domains []Domain
}

// Domain is one value of a topology key, such as a zone.
type Domain struct {
	Name string
	// Spot and OnDemand say that the domain has nodes of the type that the template allows.
	Spot, OnDemand bool
}

// has reports whether the domain has nodes of a capacity type that the template allows.
func (d *Domain) has(capacityType capacity.Type) bool {
	return (capacityType == capacity.Spot && d.Spot) || (capacityType == capacity.OnDemand && d.OnDemand)
}

// String names the constraint.
func (s *Spread) String() string {
	return fmt.Sprintf("topology spread constraint over %s (maxSkew %d)", s.Key, s.MaxSkew)
}

// SpreadsOf reads constraints and the domains that nodes form. Only nodes that have the keys of all constraints form any.
func SpreadsOf(constraints []corev1.TopologySpreadConstraint, needs capacity.NodeRequirements, capacityType capacity.Labels, nodes iter.Seq2[string, map[string]string]) []Spread {
	domains := make([]map[string]Domain, len(constraints))
	for i := range domains {
		domains[i] = map[string]Domain{}
	}
	for name, labels := range nodes {
		if slices.ContainsFunc(constraints, func(c corev1.TopologySpreadConstraint) bool {
			_, has := labels[c.TopologyKey]
			return !has
		}) {
			continue
		}
		of, fits := capacityType.OfNode(labels), needs.Fit(name, labels)
		for i := range constraints {
			value := labels[constraints[i].TopologyKey]
			d := domains[i][value]
			d.Name, d.Spot, d.OnDemand = value, d.Spot || (fits && of == capacity.Spot), d.OnDemand || (fits && of == capacity.OnDemand)
			domains[i][value] = d
		}
	}
	list := make([]Spread, len(constraints))
	for i := range constraints {
		list[i] = spreadOf(&constraints[i], domains[i])
	}
	return list
}

func spreadOf(c *corev1.TopologySpreadConstraint, domains map[string]Domain) Spread {
	s := Spread{Key: c.TopologyKey, MaxSkew: max(int(c.MaxSkew), 1), MinDomains: 1}
	if c.MinDomains != nil {
		s.MinDomains = int(*c.MinDomains)
	}
	for _, name := range slices.Sorted(maps.Keys(domains)) {
		s.Domains = append(s.Domains, domains[name])
	}
	if s.Apart = apart(c, s.Domains); s.Apart == "" {
		s.Together = true
		return s
	}
	s.Domains = slices.DeleteFunc(s.Domains, func(d Domain) bool { return !d.Spot && !d.OnDemand })
	return s
}

// apart says why the scheduler cannot count both capacity types together for a constraint that does not ask for it; empty: it
// can, or the constraint asks for it. Counting all nodes is only safe where each domain has nodes of both types: a domain in
// which a pod cannot be keeps the fewest at what is there, and soon no other domain may take one more.
func apart(c *corev1.TopologySpreadConstraint, domains []Domain) string {
	switch {
	case capacity.InclusionPolicy(c.NodeAffinityPolicy) == corev1.NodeInclusionPolicyIgnore:
		return ""
	case c.NodeAffinityPolicy != nil:
		return "its nodeAffinityPolicy requires it"
	case capacity.InclusionPolicy(c.NodeTaintsPolicy) == corev1.NodeInclusionPolicyHonor:
		return "its nodeTaintsPolicy leaves out nodes whose taints a pod does not tolerate"
	case len(domains) == 0:
		return "no node has the required labels"
	}
	for i := range domains {
		for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
			if !domains[i].has(capacityType) {
				return fmt.Sprintf("%s has no %s node that the template allows", domains[i].Name, capacityType)
			}
		}
	}
	return ""
}

// DomainsOf returns in which domain of each spread a node with these labels is; negative: in none.
func DomainsOf(spreads []Spread, labels map[string]string) []int32 {
	domains := make([]int32, len(spreads))
	for i := range spreads {
		domains[i] = -1
		value, has := labels[spreads[i].Key]
		if at, found := slices.BinarySearchFunc(spreads[i].Domains, value, func(d Domain, name string) int { return strings.Compare(d.Name, name) }); has && found {
			domains[i] = int32(at)
		}
	}
	return domains
}
