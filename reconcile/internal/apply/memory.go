package apply

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxApplied bounds how many objects an engagement remembers.
const maxApplied = 4096

// Memory knows of one engagement's objects which version has which configuration: because the server answered so to a
// write, or because it was compared. So an object that did not change is not compared again, a write that the cache does not
// show yet is not repeated, and an object that reads differently although the server says that it has all of the
// configuration (a quantity in other words, a list that others add to) is not sent again until it changes. Losing an entry
// costs a comparison, or a call that changes nothing.
type Memory struct {
	mu       sync.Mutex
	last     map[appliedKey]appliedVersion
	contests map[appliedKey]contest // of objects that were repaired
}

type appliedKey struct {
	gvk schema.GroupVersionKind
	types.NamespacedName
}

type appliedVersion struct {
	hash, version string
	at            time.Time // when it was noted
}

// cachePatience is how far a cache may be behind a write of ours. An object that is older for longer comes from a member
// whose etcd was restored from a backup, and is compared like any other.
const cachePatience = time.Minute

func (a *Call) key() appliedKey { return appliedKey{a.gvk, client.ObjectKeyFromObject(a.obj)} }

// holds notes that an object of this version has the configuration.
func (m *Memory) holds(key appliedKey, hash, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = map[appliedKey]appliedVersion{}
	}
	makeRoom(m.last, key)
	m.last[key] = appliedVersion{hash, version, time.Now()}
}

// makeRoom drops some entry if one for key would be too many.
func makeRoom[V any](m map[appliedKey]V, key appliedKey) {
	if _, known := m[key]; known || len(m) < maxApplied {
		return
	}
	for other := range m {
		delete(m, other)
		return
	}
}

// settled reports whether the cached object, of this version, is known to have the configuration, or to be about to: an older
// version than the one that has it is, for a while, one that the cache will replace, which wakes the key.
func (m *Memory) settled(key appliedKey, hash, version string) bool {
	m.mu.Lock()
	last, ok := m.last[key]
	m.mu.Unlock()
	if !ok || last.hash != hash {
		return false
	}
	if version == last.version {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(version, last.version)
	return err == nil && order < 0 && time.Since(last.at) < cachePatience
}

// forget drops an object that is gone.
func (m *Memory) forget(key appliedKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, key)
	delete(m.contests, key)
}
