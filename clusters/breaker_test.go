package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

// roundTrips are requests to a member by what becomes of them: how much longer the row of failures without an answer is then.
var roundTrips = map[string]struct {
	method string
	err    error // nil: the member answers
	gaveUp bool  // the caller does
	row    func(before int) int
}{
	"a read is answered":          {http.MethodGet, nil, false, func(int) int { return 0 }},
	"a write is answered":         {http.MethodPut, nil, false, func(int) int { return 0 }},
	"a read has no answer":        {http.MethodGet, io.ErrUnexpectedEOF, false, func(n int) int { return n + 1 }},
	"a read times out":            {http.MethodGet, &intake.TimeoutError{}, false, func(n int) int { return n + 1 }},
	"a write has no answer":       {http.MethodPut, io.ErrUnexpectedEOF, false, func(n int) int { return n + 1 }},
	"a write times out":           {http.MethodPost, fmt.Errorf("wrapped: %w", &intake.TimeoutError{}), false, func(n int) int { return n }},
	"the caller gives a read up":  {http.MethodGet, context.Canceled, true, func(n int) int { return n }},
	"the replica is not an owner": {http.MethodPatch, fmt.Errorf("wrapped: %w", ErrNotOwner), false, func(n int) int { return n }},
	"the budget is spent":         {http.MethodGet, fmt.Errorf("wrapped: %w", errBudget), false, func(n int) int { return n }},
}

// sendOnce sends a request that its caller may have given up.
func sendOnce(t *rapid.T, through http.RoundTripper, method string, gaveUp bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if gaveUp {
		cancel()
	}
	req, err := http.NewRequestWithContext(ctx, method, "https://member.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := through.RoundTrip(req)
	if resp != nil {
		_ = resp.Body.Close()
	}
	return err
}

// Whatever the order of outcomes: the breaker opens after a row of failures that say something about the member, requests are not
// sent while it is open, and only a good probe closes it.
func TestTheBreakerOpensForWhatTheMemberDoesNotAnswerOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var told []bool
		sent, row, open := 0, 0, false
		b := &breaker{member: "a", onChange: func(open bool) { told = append(told, open) }}
		var outcome error
		guarded := b.guard(intake.RoundTripper(func(*http.Request) (*http.Response, error) {
			sent++
			if outcome != nil {
				return nil, outcome
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
		}))
		actions := map[string]func(*rapid.T){
			"a probe is answered": func(*rapid.T) {
				b.close()
				row, open = 0, false
			},
			"a probe fails": func(*rapid.T) {
				b.open()
				open = true
			},
			"": func(t *rapid.T) {
				if b.isOpen() != open {
					t.Fatalf("after a row of %d the breaker is open: %t", row, b.isOpen())
				}
				if len(told) > 0 && told[len(told)-1] != open {
					t.Fatalf("it was notified that the breaker is open: %t", !open)
				}
			},
		}
		for name, trip := range roundTrips {
			actions[name] = func(t *rapid.T) {
				for range rapid.IntRange(1, requestFailuresToOpen).Draw(t, "times") {
					before, was := sent, open
					outcome = trip.err
					err := sendOnce(t, guarded, trip.method, trip.gaveUp)
					if refused := errors.Is(err, ErrBreakerOpen); refused != was || refused == (sent > before) {
						t.Fatalf("sent %d, error %v, open: %t", sent-before, err, was)
					}
					if !was {
						row = trip.row(row)
						open = row >= requestFailuresToOpen
					}
				}
			}
		}
		t.Repeat(actions)
	})
}
