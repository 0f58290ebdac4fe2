package clusters

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// claims settles which registration a cluster, or a namespace of it, belongs to. The oldest Secret comes first, and of
// Secrets of the same second the one whose name sorts first; each gets what it claims unless one before it got a part of
// that. The order in which they were found does not matter. Those whose server has changed what it says it is come last: a
// server may say anything, and must not push out another by saying that it is that one.
type claims struct {
	mu     sync.Mutex
	byName map[string][]claim
	byID   map[string]map[string]bool // identity of a cluster → the names that claim it
}

// claim is what one Secret claims: namespaces of the cluster that is known by any of the ids.
type claim struct {
	name       string
	created    time.Time // of the Secret
	ids        []string
	namespaces []string // sorted; nil: the whole cluster
	turned     bool     // the server has said before that it is another cluster
}

func newClaims() *claims {
	return &claims{byName: map[string][]claim{}, byID: map[string]map[string]bool{}}
}

// set makes these what name claims, in place of what it claimed before. It returns the other names that a change of it
// concerns; they have to look again at what they got.
func (c *claims) set(name string, now ...claim) (affected []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.byName[name]
	if slices.EqualFunc(before, now, claim.equal) {
		return nil
	}
	touched := c.kin(name)
	for _, one := range before {
		for _, id := range one.ids {
			if delete(c.byID[id], name); len(c.byID[id]) == 0 {
				delete(c.byID, id)
			}
		}
	}
	delete(c.byName, name)
	for _, one := range now {
		c.byName[name] = append(c.byName[name], one)
		for _, id := range one.ids {
			if c.byID[id] == nil {
				c.byID[id] = map[string]bool{}
			}
			c.byID[id][name] = true
		}
	}
	touched = append(touched, c.kin(name)...)
	slices.Sort(touched)
	return slices.DeleteFunc(slices.Compact(touched), func(other string) bool { return other == name })
}

// kin are the names that claim a cluster together with name, directly or through others, and name itself.
func (c *claims) kin(name string) []string {
	found := []string{name}
	for i := 0; i < len(found); i++ {
		for _, one := range c.byName[found[i]] {
			for _, id := range one.ids {
				for other := range c.byID[id] {
					if !slices.Contains(found, other) {
						found = append(found, other)
					}
				}
			}
		}
	}
	return found
}

// rival returns the claim of another name that keeps mine from what it claims, and the namespace that both claim ("": all);
// nil when mine gets it.
func (c *claims) rival(mine claim) (rival *claim, namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []claim
	for _, name := range c.kin(mine.name) {
		all = append(all, c.byName[name]...)
	}
	slices.SortStableFunc(all, func(a, b claim) int {
		return cmp.Or(compareBool(a.turned, b.turned), a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
	var settled []claim
	for _, one := range all {
		rival, namespace = one.beaten(settled)
		if one.equal(mine) {
			return rival, namespace
		}
		if rival == nil {
			settled = append(settled, one)
		}
	}
	return nil, ""
}

// beaten returns the first of others that claims a part of what c does.
func (c claim) beaten(others []claim) (rival *claim, namespace string) {
	for i := range others {
		if other := &others[i]; other.name != c.name && slices.ContainsFunc(other.ids, func(id string) bool { return slices.Contains(c.ids, id) }) {
			if shared, found := overlap(other.namespaces, c.namespaces); found {
				return other, shared
			}
		}
	}
	return nil, ""
}

func (c claim) equal(other claim) bool {
	return c.name == other.name && c.turned == other.turned && c.created.Equal(other.created) && slices.Equal(c.ids, other.ids) &&
		slices.Equal(c.namespaces, other.namespaces) && (c.namespaces == nil) == (other.namespaces == nil)
}

// compareBool sorts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// refusal says why mine is not granted, which the claim c keeps it from. Its message names no other registration: whoever may
// see one member may not see all.
func (c *claim) refusal(mine claim, namespace string) *problem {
	p := refused(ReasonDuplicateCluster, "the same cluster is registered by an older Secret")
	switch {
	case mine.turned && !c.turned:
		p.message = "its API server now says that it is the cluster that another Secret registers, and said something else before"
	case namespace != "":
		p = refused(ReasonOverlappingNamespaces, "namespace "+namespace+" of the same cluster is registered by an older Secret")
	}
	p.rival = c.name
	return p
}
