package shapes

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

func TestAShapeThatIsReadOftenIsParsedOnce(t *testing.T) {
	var p Parser
	text := capacity.Requirements{CPU: 100, Constraints: []string{"select:disk=ssd"}}.String()
	first, err := p.Parse(text)
	if err != nil || first.Requirements.CPU != 100 || len(first.Needs) != 1 {
		t.Fatalf("%s says %+v, %v", text, first, err)
	}
	if again, err := p.Parse(strings.Clone(text)); again != first || err != nil {
		t.Errorf("it is parsed again: %p, %p, %v", first, again, err)
	}
	if allocs := testing.AllocsPerRun(100, func() { _, _ = p.Parse(text) }); allocs > 0 {
		t.Errorf("%f allocations", allocs)
	}
	for _, rubbish := range []string{"", "{", strings.Repeat(" ", capacity.MaxText) + "{}"} {
		if shape, err := p.Parse(rubbish); err == nil {
			t.Errorf("%.20q says %+v", rubbish, shape)
		}
	}
}

// A parsed shape takes several times its text, and no budget counts it.
func TestShapesWithoutEndAreNotKeptParsed(t *testing.T) {
	var p Parser
	large := strings.Repeat("a", capacity.MaxText-100)
	for n := range 4 * maxParsed {
		if _, err := p.Parse(capacity.Requirements{CPU: int64(n)}.String()); err != nil {
			t.Fatal(err)
		}
		if n%64 > 0 {
			continue
		}
		if shape, err := p.Parse(capacity.Requirements{CPU: int64(n), Constraints: []string{large}}.String()); err != nil || shape.Requirements.CPU != int64(n) {
			t.Fatalf("%d: %v, %v", n, shape, err)
		}
	}
	bytes := 0
	for text := range p.known {
		bytes += len(text)
	}
	if len(p.known) == 0 || len(p.known) > maxParsed || bytes > maxParsedBytes || bytes != p.bytes {
		t.Errorf("%d are kept with %d bytes, and %d are counted", len(p.known), bytes, p.bytes)
	}
}

func TestShapesAreParsedByManyAtOnce(t *testing.T) {
	var p Parser
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range 1000 {
				shape, err := p.Parse(fmt.Sprintf(`{"cpu":%d}`, n%100))
				if err != nil || shape.Requirements.CPU != int64(n%100) {
					t.Errorf("%d: %v, %v", n, shape, err)
				}
			}
		})
	}
	all.Wait()
	if len(p.known) != 100 {
		t.Errorf("%d are kept", len(p.known))
	}
}
