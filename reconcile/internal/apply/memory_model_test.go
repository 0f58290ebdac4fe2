package apply

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// inBubble hides that a test is a *testing.T, whose deadline nobody may ask for in a bubble.
type inBubble struct{ rapid.TB }

// stored is an object as a member's store has it.
type stored struct {
	version int
	ours    bool // it has what the controller wants
}

// restoredMember is a member whose store is restored from backups, with a cache that is late.
type restoredMember struct {
	memory               Memory
	key                  appliedKey
	store, cache, backup stored
	revision             int
	backupRevision       int
	written              map[int]bool // versions that the memory may know
}

// write leaves out that the object gets a version again that it had before the restore: the store would have to give the same
// revision to the same object twice.
func (m *restoredMember) write(ours bool) {
	for m.revision++; m.written[m.revision]; {
		m.revision++
	}
	m.store = stored{version: m.revision, ours: ours}
}

// reconcile does what a Call does with the cached object: compare it unless it is settled, and write where it differs.
func (m *restoredMember) reconcile() {
	version := strconv.Itoa(m.cache.version)
	if m.memory.settled(m.key, "hash", version) {
		return
	}
	if !m.cache.ours {
		m.write(true)
		version = strconv.Itoa(m.store.version)
		m.written[m.store.version] = true
	} else {
		m.written[m.cache.version] = true
	}
	m.memory.holds(m.key, "hash", version)
}

func TestAnObjectIsSetRightWhateverBecomesOfItsMembersStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(t *rapid.T) {
			m := &restoredMember{key: appliedKey{NamespacedName: types.NamespacedName{Name: "x"}}, written: map[int]bool{}}
			m.write(false)
			m.cache, m.backup, m.backupRevision = m.store, m.store, m.revision
			t.Repeat(map[string]func(*rapid.T){
				"reconcile":     func(*rapid.T) { m.reconcile() },
				"other changes": func(*rapid.T) { m.write(false) },
				"elsewhere":     func(t *rapid.T) { m.revision += rapid.IntRange(1, 50).Draw(t, "revisions") },
				"cache follows": func(*rapid.T) { m.cache = m.store },
				"back up":       func(*rapid.T) { m.backup, m.backupRevision = m.store, m.revision },
				"restore":       func(*rapid.T) { m.store, m.revision = m.backup, m.backupRevision },
				"time":          func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second) },
				"settle": func(t *rapid.T) {
					m.cache = m.store
					time.Sleep(cachePatience)
					m.reconcile()
					if !m.store.ours {
						t.Fatalf("version %d stays as others want it; known: %v", m.store.version, m.memory.last)
					}
					at := m.store.version
					m.cache = m.store
					m.reconcile()
					if m.store.version != at {
						t.Fatal("what has the configuration is written again")
					}
				},
			})
		})
	})
}

// A rival sets a field back at any moments. Quick repairs, then 1, 2, 4 … s between them, allow eight in a minute.
func TestARivalIsAnsweredSeldomAndAlwaysAgain(t *testing.T) {
	const most = 8
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(t *rapid.T) {
			var m Memory
			var repairs []time.Time
			key := appliedKey{NamespacedName: types.NamespacedName{Name: "x"}}
			repair := func() bool {
				if _, wait := m.contested(key); wait {
					return false
				}
				m.repaired(key)
				repairs = append(repairs, time.Now())
				return true
			}
			t.Repeat(map[string]func(*rapid.T){
				"fight": func(t *rapid.T) {
					for range rapid.IntRange(1, 600).Draw(t, "times") {
						repair()
						time.Sleep(100 * time.Millisecond)
					}
				},
				"pause": func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 1200).Draw(t, "seconds")) * time.Second) },
				"calm": func(t *rapid.T) {
					time.Sleep(calmAfter + 6*time.Minute)
					for range quickRepairs {
						if !repair() {
							t.Fatal("after a calm time a repair has to wait")
						}
					}
				},
				"wait": func(t *rapid.T) {
					time.Sleep(6 * time.Minute)
					if !repair() {
						t.Fatal("a repair waits for more than the longest back-off")
					}
				},
				"": func(t *rapid.T) {
					for i := most; i < len(repairs); i++ {
						if took := repairs[i].Sub(repairs[i-most]); took < time.Minute {
							t.Fatalf("%d repairs in %s", most+1, took)
						}
					}
				},
			})
		})
	})
}
