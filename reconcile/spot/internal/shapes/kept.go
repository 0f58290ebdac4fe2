package shapes

import (
	"crypto/sha256"
	"sync"
)

// Sum stands in for the text of a shape where it is only compared: equal ones are of equal texts.
type Sum [16]byte

// SumOf returns the sum of a text.
func SumOf(text string) Sum {
	sum := sha256.Sum256([]byte(text))
	return Sum(sum[:16])
}

// Kept is a text that no object in a cache has any more, so that no budget of a cache counts it. The zero value is empty.
type Kept struct {
	Text    string
	Sum     Sum // of the text
	dropped bool
}

// maxKept is how many bytes the texts of a [Keeper] have together, and maxKeptOwn those of one namespace. Whoever creates pods chooses how
// long the texts are and, by the owners that the pods name, how many.
const maxKept, maxKeptOwn = 8 << 20, 512 << 10

// Keeper counts what kept texts take. The zero value is ready. It is safe for concurrent use; each [Kept] needs a lock of its own.
type Keeper struct {
	mu    sync.Mutex
	of    map[string]int // bytes by namespace
	bytes int
}

// Set keeps a text of a namespace in the place of another; where there is no room, and of the empty text, nothing is kept.
func (k *Keeper) Set(into *Kept, namespace, text string) {
	if text == into.Text || into.dropped {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count(namespace, -len(into.Text))
	if *into = (Kept{}); text == "" || k.of[namespace]+len(text) > maxKeptOwn || k.bytes+len(text) > maxKept {
		return
	}
	k.count(namespace, len(text))
	into.Text, into.Sum = text, SumOf(text)
}

// Drop is for what is forgotten: it keeps no text, also if somebody who still has it sets one.
func (k *Keeper) Drop(into *Kept, namespace string) {
	k.Set(into, namespace, "")
	into.dropped = true
}

// count counts bytes in, or out. The caller holds mu.
func (k *Keeper) count(namespace string, bytes int) {
	if k.of == nil {
		k.of = map[string]int{}
	}
	k.bytes += bytes
	if k.of[namespace] += bytes; k.of[namespace] == 0 {
		delete(k.of, namespace)
	}
}
