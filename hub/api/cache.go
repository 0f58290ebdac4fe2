package api

import (
	"sync"
	"time"
)

// cache holds answers for a short time. It is bounded: when it is full, what has expired goes first, then anything.
type cache[K comparable, V any] struct {
	limit int

	mu      sync.Mutex
	entries map[K]cached[V]
}

type cached[V any] struct {
	value   V
	expires time.Time
}

func newCache[K comparable, V any](limit int) *cache[K, V] {
	return &cache[K, V]{limit: limit, entries: map[K]cached[V]{}}
}

// get returns the value of key while it has not expired.
func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[key]
	if !ok || !time.Now().Before(entry.expires) {
		delete(c.entries, key)
		var none V
		return none, false
	}
	return entry.value, true
}

// keep returns the value of key while it has not expired, and makes it expire after ttl from now.
func (c *cache[K, V]) keep(key K, ttl time.Duration) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[key]
	now := time.Now()
	if !ok || !now.Before(entry.expires) {
		var none V
		return none, false
	}
	c.entries[key] = cached[V]{value: entry.value, expires: now.Add(ttl)}
	return entry.value, true
}

// put keeps value for ttl.
func (c *cache[K, V]) put(key K, value V, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if _, replaces := c.entries[key]; !replaces && len(c.entries) >= c.limit {
		c.makeRoom(now)
	}
	c.entries[key] = cached[V]{value: value, expires: now.Add(ttl)}
}

// add keeps value for ttl, unless there is one for key that has not expired. It returns the one that is kept, and whether that is value.
func (c *cache[K, V]) add(key K, value V, ttl time.Duration) (kept V, added bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	before, is := c.entries[key]
	if is && now.Before(before.expires) {
		return before.value, false
	}
	if !is && len(c.entries) >= c.limit {
		c.makeRoom(now)
	}
	c.entries[key] = cached[V]{value: value, expires: now.Add(ttl)}
	return value, true
}

// drop forgets key.
func (c *cache[K, V]) drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}

// makeRoom drops what has expired and, if that is nothing, an eighth of the rest: so a full cache does not pay for it at
// every put.
func (c *cache[K, V]) makeRoom(now time.Time) {
	for key, entry := range c.entries {
		if !now.Before(entry.expires) {
			delete(c.entries, key)
		}
	}
	for key := range c.entries {
		if len(c.entries) <= c.limit-max(1, c.limit/8) {
			return
		}
		delete(c.entries, key)
	}
}

// size is how many entries are held, expired ones included.
func (c *cache[K, V]) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// lifetime is how long an answer is remembered: a yes longer than a no.
func lifetime(answer bool, yes, no time.Duration) time.Duration {
	if answer {
		return yes
	}
	return no
}
