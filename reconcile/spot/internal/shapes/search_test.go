package shapes

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

func decisionOn(shape capacity.Requirements) shortage.Standing {
	return shortage.Standing{Decision: shortage.Decision{Requirements: shape}, Text: shape.String()}
}

func TestADecisionIsNeededAsLongAsAShapeIsAtLeastAsHardToPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parser Parser
		var search Search
		shape := rapid.Custom(func(t *rapid.T) capacity.Requirements {
			return capacity.Requirements{CPU: rapid.Int64Range(1, 4).Draw(t, "cpu"), Memory: rapid.Int64Range(1, 4).Draw(t, "memory")}
		})
		for range rapid.IntRange(1, 5).Draw(t, "searches") {
			all := rapid.SliceOfN(shape, 0, 8).Draw(t, "shapes")
			var texts []string
			for _, s := range all {
				texts = append(texts, s.String())
			}
			var decisions []shortage.Standing
			for _, s := range rapid.SliceOfNDistinct(shape, 0, 4, capacity.Requirements.String).Draw(t, "decisions") {
				decisions = append(decisions, decisionOn(s))
			}
			search.after = time.Time{}
			got := search.Needed(&parser, decisions, func() []string { return slices.Clone(texts) })
			for i, d := range decisions {
				if want := slices.ContainsFunc(all, func(s capacity.Requirements) bool { return s.AtLeast(d.Requirements) }); got[i] != want {
					t.Fatalf("%s is needed: %t, of %v", d.Text, got[i], texts)
				}
			}
			if len(search.found) > len(decisions) {
				t.Fatalf("%d are remembered of %d decisions", len(search.found), len(decisions))
			}
		}
	})
}

// One tenant can have thousands of large shapes. No more than one of them at a time is parsed, and none again as long as it is there.
func TestASearchKeepsNoShapesParsed(t *testing.T) {
	const shapes = 500
	var parser Parser
	var search Search
	large := strings.Repeat("a", 40)
	texts := make([]string, shapes)
	for n := range texts {
		shape := capacity.Requirements{CPU: int64(n)}
		for i := range 1000 {
			shape.Constraints = append(shape.Constraints, fmt.Sprintf("select:%s%04d=%d", large, i, n))
		}
		texts[n] = shape.String()
	}
	last, err := capacity.ParseRequirements(texts[shapes-1])
	if err != nil {
		t.Fatal(err)
	}
	nobody := decisionOn(capacity.Requirements{CPU: 1, Constraints: []string{"select:b=c"}})
	got := search.Needed(&parser, []shortage.Standing{decisionOn(last), nobody}, func() []string { return slices.Clone(texts) })
	if !got[0] || got[1] || len(parser.known) > 0 {
		t.Fatalf("%v, and %d shapes are kept parsed", got, len(parser.known))
	}
	if got := search.Needed(&parser, []shortage.Standing{nobody}, func() []string { t.Error("it is searched again at once"); return nil }); !got[0] {
		t.Error("it is not needed, and nobody has looked")
	}
	search.after = time.Time{}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got = search.Needed(&parser, []shortage.Standing{decisionOn(last)}, func() []string { return slices.Clone(texts) })
	runtime.ReadMemStats(&after)
	if parsed := after.Mallocs - before.Mallocs; !got[0] || parsed > shapes {
		t.Errorf("%v, with %d allocations: shapes are parsed again", got, parsed)
	}
}
