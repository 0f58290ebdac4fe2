package cache

import (
	"sync"
	"time"

	utilcache "k8s.io/apimachinery/pkg/util/cache"
)

// Cache holds answers for a short time. It is bounded: when it is full, what was not asked for the longest time goes. It is safe for
// concurrent use.
type Cache[K comparable, V any] struct {
	entries *utilcache.LRUExpireCache
	mu      sync.Mutex // what reads an entry and then writes it holds it, and so does every write
}

// New creates one that holds at most limit answers.
func New[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{entries: utilcache.NewLRUExpireCache(limit)}
}

// Get returns the value of key while it has not expired.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	found, ok := c.entries.Get(key)
	if ok {
		value = found.(V)
	}
	return value, ok
}

// Keep returns the value of key while it has not expired, and makes it expire after ttl from now.
func (c *Cache[K, V]) Keep(key K, ttl time.Duration) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.Get(key)
	if ok {
		c.set(key, value, ttl)
	}
	return value, ok
}

// Put keeps value for ttl.
func (c *Cache[K, V]) Put(key K, value V, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(key, value, ttl)
}

// Add keeps value for ttl, unless there is one for key that has not expired. It returns the one that is kept, and whether that is value.
func (c *Cache[K, V]) Add(key K, value V, ttl time.Duration) (kept V, added bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, is := c.Get(key); is {
		return before, false
	}
	c.set(key, value, ttl)
	return value, true
}

// Drop forgets key.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Remove(key)
}

// set makes an entry that is gone once ttl has passed; the library's is there for that instant still.
func (c *Cache[K, V]) set(key K, value V, ttl time.Duration) { c.entries.Add(key, value, ttl-1) }
