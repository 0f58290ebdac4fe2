package shapes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// Whoever creates pods names as many owners as it likes, and each has a text of its own.
func TestKeptTextsTakeLittleForEachNamespaceAndForAll(t *testing.T) {
	var k Keeper
	large := strings.Repeat("a", capacity.MaxText-10)
	all := map[string][]Kept{}
	bytes := func() (sum int) {
		for namespace, kept := range all {
			own := 0
			for i := range kept {
				own += len(kept[i].Text)
			}
			if sum += own; own > maxKeptOwn || own != k.of[namespace] {
				t.Fatalf("%d bytes of %s are kept, and %d are counted", own, namespace, k.of[namespace])
			}
		}
		if sum > maxKept || sum != k.bytes {
			t.Fatalf("%d bytes are kept, and %d are counted", sum, k.bytes)
		}
		return sum
	}
	for n := range 40 {
		namespace := fmt.Sprint("tenant-", n)
		all[namespace] = make([]Kept, 20)
		for i := range all[namespace] {
			k.Set(&all[namespace][i], namespace, fmt.Sprint(i, large))
		}
		bytes()
	}
	if n := bytes(); n < maxKept-capacity.MaxText {
		t.Errorf("only %d bytes are kept", n)
	}
	first := &all["tenant-0"][0]
	if k.Set(first, "tenant-0", "short"); first.Text != "short" || first.Sum != SumOf("short") || first.Sum == SumOf(large) {
		t.Errorf("%.20q is kept", first.Text)
	}
	bytes()
	for namespace, kept := range all {
		for i := range kept {
			k.Drop(&kept[i], namespace)
			k.Set(&kept[i], namespace, "late")
		}
	}
	if n := bytes(); n != 0 || len(k.of) != 0 {
		t.Errorf("%d bytes of %d namespaces are kept of what is forgotten", n, len(k.of))
	}
}
