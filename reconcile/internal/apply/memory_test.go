package apply

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A member whose etcd was restored from a backup has objects of lower versions than those that were written.
func TestAnObjectFromABackupIsComparedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memory
		key := appliedKey{NamespacedName: types.NamespacedName{Name: "x"}}
		m.holds(key, "hash", "5000")
		if !m.settled(key, "hash", "2500") {
			t.Error("a cache that is behind a write has it written again")
		}
		time.Sleep(cachePatience)
		if m.settled(key, "hash", "2500") {
			t.Error("the older version counts for ever as one that the cache is about to replace")
		}
		if !m.settled(key, "hash", "5000") {
			t.Error("what was written is forgotten")
		}
	})
}
