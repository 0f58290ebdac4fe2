package depend

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// maxSearch bounds how many objects a search for a circle looks at.
const maxSearch = 1000

// A node is an object as one that depends and as one that is depended on, in whatever version.
type node struct {
	member string
	kind   schema.GroupKind
	name   types.NamespacedName
}

func (t target) node() node { return node{member: t.member, kind: t.gvk.GroupKind(), name: t.name} }

func (d *dependent) node() node {
	return node{member: d.flow.member, kind: d.flow.kind, name: d.key}
}

// circle says in words how an unmet dependency leads back to the object that has it; empty: it does not.
func (ds *Index) circle(n *Needs, d Dependency) string {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	one := n.flow.by[n.key]
	if one == nil {
		return ""
	}
	from := one.node()
	way := shortestWay(d.target().node(), from, ds.waitsFor)
	if way == nil {
		return ""
	}
	words := []string{from.in(from.member)}
	for _, step := range way {
		words = append(words, step.in(from.member))
	}
	return "a circle of dependencies: " + strings.Join(words, " → ")
}

// waitsFor are the objects whose conditions an object waits for, by the last reconciles of all controllers of its kind.
func (ds *Index) waitsFor(of node) []node {
	var all []node
	for one := range ds.nodes[of] {
		for _, d := range one.unmet {
			if d.condition != "" {
				all = append(all, d.target().node())
			}
		}
	}
	slices.SortFunc(all, compareNodes)
	return slices.Compact(all)
}

// shortestWay searches a way along next, breadth first; it includes both ends. Nil: there is none, or it is too far.
func shortestWay(from, to node, next func(node) []node) []node {
	came := map[node]node{from: from}
	line := []node{from}
	for len(line) > 0 && len(came) <= maxSearch {
		at := line[0]
		line = line[1:]
		if at == to {
			way := []node{at}
			for at != from {
				at = came[at]
				way = append(way, at)
			}
			slices.Reverse(way)
			return way
		}
		for _, to := range next(at) {
			if _, seen := came[to]; !seen {
				came[to] = at
				line = append(line, to)
			}
		}
	}
	return nil
}

// in names the node as seen from a member.
func (n node) in(member string) string {
	s := n.kind.Kind + " " + object.StoreKey(n.name)
	if n.member != member {
		s += " in member " + n.member
	}
	return s
}

func compareNodes(a, b node) int {
	return cmp.Or(cmp.Compare(a.member, b.member), cmp.Compare(a.kind.Group, b.kind.Group), cmp.Compare(a.kind.Kind, b.kind.Kind),
		cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name))
}
