package clusters

import (
	"sync"
	"time"
)

// claims settles which registration a cluster belongs to: the oldest Secret that leads to it, and of Secrets of the same
// second the one whose name sorts first. The order in which they were found does not matter, so a restart changes
// nothing.
type claims struct {
	mu     sync.Mutex
	byUID  map[string]map[string]time.Time // cluster UID → name of the claiming Secret → its creation
	byName map[string][]string             // name → the UIDs it claims
}

func newClaims() *claims {
	return &claims{byUID: map[string]map[string]time.Time{}, byName: map[string][]string{}}
}

// set makes uids what name claims, in place of what it claimed before. It returns the other names that claim a cluster
// of which name has begun or ceased to be a claimant; they have to look at the winner again.
func (c *claims) set(name string, created time.Time, uids ...string) (affected []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	touched := map[string]bool{}
	for _, uid := range c.byName[name] {
		touched[uid] = true
		delete(c.byUID[uid], name)
	}
	before := touched
	touched = map[string]bool{}
	for _, uid := range uids {
		if c.byUID[uid] == nil {
			c.byUID[uid] = map[string]time.Time{}
		}
		c.byUID[uid][name] = created
		if !before[uid] {
			touched[uid] = true
		}
		delete(before, uid)
	}
	for uid := range before {
		touched[uid] = true
	}
	c.byName[name] = uids
	if len(uids) == 0 {
		delete(c.byName, name)
	}
	for uid := range touched {
		for other := range c.byUID[uid] {
			if other != name {
				affected = append(affected, other)
			}
		}
		if len(c.byUID[uid]) == 0 {
			delete(c.byUID, uid)
		}
	}
	return affected
}

// winner returns the name that the cluster uid belongs to, "" if nobody claims it.
func (c *claims) winner(uid string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	winner, oldest := "", time.Time{}
	for name, created := range c.byUID[uid] {
		if winner == "" || created.Before(oldest) || created.Equal(oldest) && name < winner {
			winner, oldest = name, created
		}
	}
	return winner
}
