package clusters

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// claims settles which registration a cluster, or a namespace of it, belongs to. The oldest Secret comes first, and of
// Secrets of the same second the one whose name sorts first; each gets what it claims unless one before it got a part of
// that. The order in which they were found does not matter. Those whose server has changed what it says it is come last, and
// before them those whose server did not say it at first: a server may say anything, and must not push out another by saying
// that it is that one. Claims that can show whether they are one cluster count as that only when it was shown (proofs.go).
type claims struct {
	mu     sync.Mutex
	byName map[string][]claim
	byID   map[string]map[string]bool // identity of a cluster → the names that claim it
	proofs map[pair]*proof
}

// claim is what one Secret claims: namespaces of the cluster that is known by any of the ids.
type claim struct {
	name       string
	created    time.Time // of the Secret
	ids        []string  // the server is first
	namespaces []string  // sorted; nil: the whole cluster
	late       bool      // the server did not say at first what cluster it is
	turned     bool      // the server has said before that it is another cluster
	lease      string    // the namespace of the Lease with which it can show what cluster it is; "": it cannot
	witness    witness   // shows it
}

func newClaims() *claims {
	return &claims{byName: map[string][]claim{}, byID: map[string]map[string]bool{}, proofs: map[pair]*proof{}}
}

// set makes these what name claims, in place of what it claimed before. It returns the other names that a change of it
// concerns; they have to look again at what they got.
func (c *claims) set(name string, now ...claim) (affected []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.byName[name]
	if slices.EqualFunc(before, now, claim.equal) {
		c.byName[name] = now // with the witnesses that there are now
		return nil
	}
	touched := c.kin(name)
	c.dropProofs(name)
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
// nil when mine gets it, or pending: when it has to be shown first whether they are one cluster.
func (c *claims) rival(mine claim) (rival *claim, namespace string, is standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []claim
	for _, name := range c.kin(mine.name) {
		all = append(all, c.byName[name]...)
	}
	slices.SortStableFunc(all, func(a, b claim) int {
		return cmp.Or(compareBool(a.turned, b.turned), compareBool(c.isSilent(a), c.isSilent(b)), compareBool(a.late, b.late),
			a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
	var settled []claim
	for _, one := range all {
		rival, namespace = c.beaten(one, settled)
		if one.equal(mine) {
			return rival, namespace, standing{pending: rival == nil && c.isPending(one, all), silent: c.isSilent(one)}
		}
		if rival == nil {
			settled = append(settled, one)
		}
	}
	return nil, "", is
}

// standing is what else is known of a claim: whether it waits for a proof, and whether it did not do its part of one.
type standing struct{ pending, silent bool }

// beaten returns the first of others that keeps one from a part of what it claims.
func (c *claims) beaten(one claim, others []claim) (rival *claim, namespace string) {
	for i := range others {
		other := &others[i]
		if !one.meets(*other) {
			continue
		}
		if conflict, _ := c.relation(one, *other); conflict {
			namespace, _ = overlap(other.namespaces, one.namespaces)
			return other, namespace
		}
	}
	return nil, ""
}

// isPending reports whether it has to be shown first whether one is the cluster of another claim.
func (c *claims) isPending(one claim, all []claim) bool {
	return slices.ContainsFunc(all, func(other claim) bool {
		if !one.meets(other) {
			return false
		}
		_, pending := c.relation(one, other)
		return pending
	})
}

// meets reports whether two claims of different names say that they are one cluster, and claim a part of it both.
func (c claim) meets(other claim) bool {
	if other.name == c.name || !slices.ContainsFunc(other.ids, func(id string) bool { return slices.Contains(c.ids, id) }) {
		return false
	}
	_, found := overlap(other.namespaces, c.namespaces)
	return found
}

func (c claim) equal(other claim) bool {
	return c.name == other.name && c.late == other.late && c.turned == other.turned && c.lease == other.lease && c.created.Equal(other.created) &&
		slices.Equal(c.ids, other.ids) && slices.Equal(c.namespaces, other.namespaces) && (c.namespaces == nil) == (other.namespaces == nil)
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
func (c *claim) refusal(mine claim, namespace string, silent bool) *problem {
	p := refused(ReasonDuplicateCluster, "the same cluster is registered by an older Secret")
	switch {
	case silent:
		p = refused(ReasonIdentityNotShown, "another registration says that it is the same cluster, and through this one the hub cannot find out: "+
			"it must be able to get and patch Lease "+mine.lease+"/"+IdentityLease)
	case mine.turned && !c.turned:
		p.message = "its API server now says that it is the cluster that another Secret registers, and said something else before"
	case mine.late && !c.late:
		p.message = "its API server now says that it is the cluster that another Secret registers, and did not say at first which one it is"
	case namespace != "":
		p = refused(ReasonOverlappingNamespaces, "namespace "+namespace+" of the same cluster is registered by an older Secret")
	}
	p.rival = c.name
	return p
}
