package shapes

import (
	"sync"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// maxInterned texts of maxInternedBytes together bound what texts that change all the time can take: shapes, as some autoscalers make them,
// and names of nodes. No budget of a cache counts them, and who changes a template again and again must not fill the memory with them.
const maxInterned, maxInternedBytes = 1 << 14, 8 << 20

// Interned keeps one copy of equal texts. The zero value is empty. It is safe for concurrent use.
type Interned struct {
	mu    sync.Mutex
	texts map[string]string
	bytes int // of the texts
}

// Text returns the copy of a text that is kept.
func (in *Interned) Text(s string) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.textLocked(s)
}

// Labels returns a copy of labels that shares its texts with others.
func (in *Interned) Labels(from map[string]string) map[string]string {
	if from == nil {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	into := make(map[string]string, len(from))
	for key, value := range from {
		into[in.textLocked(key)] = in.textLocked(value)
	}
	return into
}

func (in *Interned) textLocked(s string) string {
	if known, ok := in.texts[s]; ok {
		return known
	}
	if len(s) > capacity.MaxText {
		return s
	}
	if in.bytes += len(s); in.texts == nil || len(in.texts) >= maxInterned || in.bytes > maxInternedBytes {
		in.texts = map[string]string{}
		in.bytes = len(s)
	}
	in.texts[s] = s
	return s
}
