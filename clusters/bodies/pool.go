package bodies

import (
	"bytes"
	"slices"
	"sync"
	"time"
)

const (
	// keptBytes is how much memory a pool keeps for the next bodies: the largest event that is read by default (4 MiB) and the
	// largest call of a webhook that is read as a whole (3 MiB).
	keptBytes = 8 << 20
	// keptFor is how long it is kept after the last use.
	keptFor = time.Second
	// grain is what the sizes of large bodies are rounded up to, so that bodies of about the same size fit into the same
	// buffer. What is smaller is not worth keeping.
	grain = 256 << 10
)

// Shared is the pool of this process.
var Shared Pool

// A Pool lends buffers and keeps some of those that come back for a second. It never refuses one: who borrows bounds how many
// bodies are read at a time. The zero value is ready. Safe for concurrent use.
type Pool struct {
	mu       sync.Mutex
	kept     []*bytes.Buffer // by capacity, the smallest first
	size     int             // of those that are kept, in bytes
	until    time.Time       // when nobody has used them for keptFor
	dropping bool            // a timer calls drop
}

// Get returns an empty buffer that takes size bytes without growing. It is the caller's until Put; a buffer that is never
// put back is collected as garbage.
func (p *Pool) Get(size int) *bytes.Buffer {
	if size < grain {
		return bytes.NewBuffer(make([]byte, 0, size))
	}
	p.mu.Lock()
	i := slices.IndexFunc(p.kept, func(b *bytes.Buffer) bool { return b.Cap() >= size })
	if i >= 0 {
		b := p.kept[i]
		p.remove(i)
		p.mu.Unlock()
		return b
	}
	p.mu.Unlock()
	return bytes.NewBuffer(make([]byte, 0, (size+grain-1)/grain*grain))
}

// Put takes a buffer back. Nothing may refer to its bytes any more.
func (p *Pool) Put(b *bytes.Buffer) {
	b.Reset()
	if b.Cap() < grain || b.Cap() > keptBytes {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at, _ := slices.BinarySearchFunc(p.kept, b.Cap(), func(kept *bytes.Buffer, size int) int { return kept.Cap() - size })
	p.kept = slices.Insert(p.kept, at, b)
	p.size += b.Cap()
	for p.size > keptBytes { // a large buffer serves small bodies as well
		p.remove(0)
	}
	p.until = time.Now().Add(keptFor)
	if !p.dropping {
		p.dropping = true
		time.AfterFunc(keptFor, p.drop)
	}
}

func (p *Pool) remove(i int) {
	p.size -= p.kept[i].Cap()
	p.kept = slices.Delete(p.kept, i, i+1)
}

// drop forgets what is kept when its time is over. It is called again until then: a timer that is reset could not be shared by tests that
// have clocks of their own.
func (p *Pool) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := time.Until(p.until); left > 0 {
		time.AfterFunc(min(left, keptFor), p.drop)
		return
	}
	p.kept, p.size, p.dropping = nil, 0, false
}
