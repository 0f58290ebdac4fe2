package shapes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

func TestEqualShapesAreHeldOnce(t *testing.T) {
	var in Interned
	for range maxInterned {
		in.Text("the same")
	}
	if len(in.texts) != 1 {
		t.Errorf("%d are held", len(in.texts))
	}
	for n := range 2 * maxInterned {
		in.Text(string(rune(n)) + "another")
	}
	if len(in.texts) > maxInterned {
		t.Errorf("%d are held", len(in.texts))
	}
}

// No budget counts these texts, and they stay when the objects have gone.
func TestLargeShapesWithoutEndTakeLittle(t *testing.T) {
	var in Interned
	for n := range 1000 {
		in.Text(fmt.Sprint(n) + strings.Repeat("a", capacity.MaxText-10))
		in.Text(fmt.Sprint(n) + strings.Repeat("a", capacity.MaxText))
	}
	bytes := 0
	for text := range in.texts {
		bytes += len(text)
	}
	if bytes == 0 || bytes > maxInternedBytes || bytes != in.bytes {
		t.Errorf("%d bytes are held, and %d are counted", bytes, in.bytes)
	}
}
