package clusters

import "slices"

// What claims know of proofs. All of it is guarded by the lock of claims.

// pair names two claims, by name and server; the lesser one is first.
type pair [2]string

// proof is what is known about two claims. It is dropped when one of them changes.
type proof struct {
	decision decision
	running  bool
	again    bool // the first try was disturbed
	due      bool // to be tried, or tried again
}

// proofTask is a proof that is to be tried now.
type proofTask struct {
	first, second claim
	proof         *proof
}

// key distinguishes the claims of a name at several servers.
func (c claim) key() string { return c.name + "\x00" + c.ids[0] }

func pairOf(a, b claim) (_ pair, swapped bool) {
	if a.key() > b.key() {
		return pair{b.key(), a.key()}, true
	}
	return pair{a.key(), b.key()}, false
}

// provable reports whether two claims can have it shown whether they lead to one cluster, and need to: one address is one cluster, and
// who said something else before loses without it.
func (c claim) provable(other claim) bool {
	return c.lease != "" && c.lease == other.lease && c.turned == other.turned && c.name != other.name &&
		!slices.Contains(other.ids, c.ids[0]) && !slices.Contains(c.ids, other.ids[0])
}

// relation of two claims that say they are one cluster and share a namespace. Where proofs stay disturbed, neither loses: who disturbs them could have
// that by not showing the other's nonce as well.
func (c *claims) relation(a, b claim) (conflict, pending bool) {
	if !a.provable(b) {
		return true, false
	}
	key, _ := pairOf(a, b)
	known := c.proofs[key]
	if known == nil || known.decision == unproven {
		return false, true
	}
	return known.decision != twoClusters && known.decision != disturbed, false
}

// isSilent reports whether a claim did not do its part of a proof that another one did.
func (c *claims) isSilent(mine claim) bool {
	for key, known := range c.proofs {
		if key[0] == mine.key() && known.decision == firstSilent || key[1] == mine.key() && known.decision == secondSilent {
			return true
		}
	}
	return false
}

// due returns the proofs that a name needs and that can begin: one at a time for each registration.
func (c *claims) due(name string) (tasks []proofTask) {
	c.mu.Lock()
	defer c.mu.Unlock()
	busy := map[string]bool{}
	for key, known := range c.proofs {
		busy[key[0]], busy[key[1]] = busy[key[0]] || known.running, busy[key[1]] || known.running
	}
	for _, mine := range c.byName[name] {
		for _, otherName := range c.kin(name) {
			for _, other := range c.byName[otherName] {
				if !mine.meets(other) || !mine.provable(other) || busy[mine.key()] || busy[other.key()] {
					continue
				}
				key, swapped := pairOf(mine, other)
				known := c.proofs[key]
				if known == nil {
					known = &proof{due: true}
					c.proofs[key] = known
				}
				if !known.due {
					continue
				}
				known.due, known.running = false, true
				busy[mine.key()], busy[other.key()] = true, true
				task := proofTask{first: mine, second: other, proof: known}
				if swapped {
					task.first, task.second = other, mine
				}
				tasks = append(tasks, task)
			}
		}
	}
	return tasks
}

// concluded takes down what a proof found; false: one of the claims has changed meanwhile.
func (c *claims) concluded(task proofTask, found decision) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	task.proof.running = false
	if key, _ := pairOf(task.first, task.second); c.proofs[key] != task.proof {
		return false
	}
	if found == disturbed && task.proof.decision == unproven && !task.proof.again {
		task.proof.again = true // by other replicas, most likely, which have their own results by then
		return true
	}
	task.proof.decision = found
	return true
}

// expire has a proof tried again. What it found counts until then.
func (c *claims) expire(task proofTask) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, _ := pairOf(task.first, task.second)
	task.proof.due = true
	return c.proofs[key] == task.proof
}

// dropProofs forgets those of a name, whose claims have changed.
func (c *claims) dropProofs(name string) {
	for _, one := range c.byName[name] {
		for key := range c.proofs {
			if key[0] == one.key() || key[1] == one.key() {
				delete(c.proofs, key)
			}
		}
	}
}
