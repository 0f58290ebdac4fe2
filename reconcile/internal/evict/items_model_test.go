package evict

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelItem is one of all items, the oldest first.
type modelItem struct{ caller, group string }

// next walks over all items, and says which goes.
func next(all []modelItem) int {
	callers, groups := map[string]int{}, map[modelItem]int{}
	for _, i := range all {
		callers[i.caller]++
		groups[i]++
	}
	largest := all[0]
	for _, i := range all[1:] {
		if cmp.Or(cmp.Compare(callers[i.caller], callers[largest.caller]), cmp.Compare(groups[i], groups[largest])) > 0 {
			largest = i
		}
	}
	return slices.Index(all, largest)
}

func TestWhichItemGoesIsWhatAWalkOverAllOfThemFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Items[string, int]
		var all []modelItem
		var numbers []int // of all
		added := 0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				i := modelItem{
					rapid.SampledFrom([]string{"", "alice", "bob", "carol"}).Draw(t, "caller"), rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "group"),
				}
				s.Add(i.caller, i.group, added)
				all, numbers = append(all, i), append(numbers, added)
				added++
			},
			"evict": func(t *rapid.T) {
				is, ok := s.Evict()
				if len(all) == 0 {
					if ok {
						t.Fatalf("%d went, which is not there", is)
					}
					return
				}
				want := next(all)
				if !ok || is != numbers[want] {
					t.Fatalf("%d went (%v), want %d, of %v", is, ok, numbers[want], all)
				}
				all, numbers = slices.Delete(all, want, want+1), slices.Delete(numbers, want, want+1)
			},
			"": func(t *rapid.T) {
				callers, groups := map[string]int{}, map[modelItem]bool{}
				for _, i := range all {
					callers[i.caller]++
					groups[i] = true
				}
				kept := 0
				for name, c := range s.callers {
					kept += len(c.groups)
					if s.Of(name) != callers[name] || len(c.ranking) != len(c.groups) {
						t.Fatalf("%q has %d items, and %d of %d groups in line; want %d items", name, s.Of(name), len(c.ranking), len(c.groups), callers[name])
					}
				}
				if len(s.callers) != len(callers) || len(s.ranking) != len(callers) || kept != len(groups) {
					t.Fatalf("%d callers, %d in line, and %d groups; want %d and %d", len(s.callers), len(s.ranking), kept, len(callers), len(groups))
				}
			},
		})
	})
}
