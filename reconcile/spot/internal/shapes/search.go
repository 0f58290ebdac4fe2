package shapes

import (
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// restFactor is how many times as long as a search took the next one is put off: what has thousands of large shapes parsed takes a tenth of a
// processor at most.
const restFactor = 10

// Search finds out for which decisions on shortages there are shapes that are at least as hard to place. The zero value is ready. It is not safe for
// concurrent use.
type Search struct {
	found map[string]string // by the text of a decision, that of a shape that was as hard or harder
	after time.Time         // when the next search may begin
}

// Needed returns for which decisions there are such shapes; texts returns those of all shapes. Few shapes are parsed as a rule: those
// that were found the last time are still there. It keeps none of them parsed. Where it is too early for another search, all count as needed.
func (s *Search) Needed(parser *Parser, decisions []shortage.Standing, texts func() []string) []bool {
	needed := make([]bool, len(decisions))
	began := time.Now()
	if began.Before(s.after) {
		for i := range needed {
			needed[i] = true
		}
		return needed
	}
	defer func() { s.after = time.Now().Add(restFactor * time.Since(began)) }()

	there := texts()
	slices.SortFunc(there, func(a, b string) int { return len(a) - len(b) }) // the short ones are most, and quick
	exists := make(map[string]struct{}, len(there))
	for _, text := range there {
		exists[text] = struct{}{}
	}
	found := make(map[string]string, len(decisions))
	open := 0
	for i := range decisions {
		text := decisions[i].Text
		if shape, known := s.found[text]; known {
			_, needed[i] = exists[shape]
			found[text] = shape
		}
		if !needed[i] {
			delete(found, text)
			open++
		}
	}
	for _, text := range there {
		if open == 0 {
			break
		}
		if _, first := exists[text]; !first {
			continue
		}
		delete(exists, text)
		shape, err := parser.once(text)
		if err != nil {
			continue
		}
		for i := range decisions {
			if !needed[i] && shape.AtLeast(decisions[i].Requirements) {
				needed[i] = true
				found[decisions[i].Text] = text
				open--
			}
		}
	}
	s.found = found
	return needed
}
