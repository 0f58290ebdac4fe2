package cli

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// refusal is the error of a list whose filter has spent its caller's budget.
func refusal(t *testing.T, reason string, retry time.Duration) error {
	t.Helper()
	refused, err := status.New(codes.ResourceExhausted, "the hub's own words").WithDetails(
		&errdetails.ErrorInfo{Reason: reason}, &errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	if err != nil {
		t.Fatal(err)
	}
	return refused.Err()
}

const (
	// filterBudget is the reason of a refusal that a list waits for, up to mostRetries times a page, and no longer than longestRetry.
	filterBudget = "FILTER_BUDGET_SPENT"
	mostRetries  = 3
	longestRetry = time.Minute
)

func TestAListWaitsForTheBudgetOfItsFilter(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		retry  time.Duration
		fails  int
		code   int
	}{
		"for a moment":  {filterBudget, time.Millisecond, mostRetries, exitOK},
		"for a place":   {"TOO_MANY_LISTS", time.Millisecond, mostRetries, exitOK},
		"again, again":  {filterBudget, time.Millisecond, mostRetries + 1, exitFailed},
		"for too long":  {filterBudget, longestRetry + 1, 1, exitFailed},
		"another limit": {"TOO_MANY_CALLS", time.Millisecond, 1, exitFailed},
	} {
		h := startHub(t)
		h.fail, h.fails = refusal(t, c.reason, c.retry), c.fails
		got := h.run(t, "get", "clusters", "--filter", "true", "-o", "name")
		if got.code != c.code || (c.code == exitOK) != strings.Contains(got.out, "prod-eu") {
			t.Errorf("%s: %+v, want exit code %d", name, got, c.code)
		}
	}
}
