package apierror_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

func TestErrorsSayWhenToTryAgainWhereThatHelps(t *testing.T) {
	for name, c := range map[string]struct {
		code   codes.Code
		reason string
		want   time.Duration
	}{
		"nobody answers now":                 {codes.Unavailable, "MEMBER_UNAVAILABLE", time.Second},
		"too many calls a second":            {codes.ResourceExhausted, apierror.TooManyCalls, time.Second},
		"what others have to end first":      {codes.ResourceExhausted, "TOO_MANY_ORDERS", 10 * time.Second},
		"a member whose breaker is open":     {codes.FailedPrecondition, apierror.NotAnswering, 10 * time.Second},
		"what does not change by itself":     {codes.FailedPrecondition, "OPERATION_BEGUN", 0},
		"what the caller may never do":       {codes.PermissionDenied, "ACCESS_DENIED", 0},
		"what is there under no such name":   {codes.NotFound, "NOT_FOUND", 0},
		"what the caller has to write right": {codes.InvalidArgument, "INVALID_ARGUMENT", 0},
	} {
		if got := apierror.RetryDelay(apierror.WithReason(status.New(c.code, name), c.reason, nil)); got != c.want {
			t.Errorf("%s: try again in %s, want %s", name, got, c.want)
		}
	}
	if got := apierror.RetryDelay(apierror.WithDelay(status.New(codes.ResourceExhausted, "spent"), "FILTER_BUDGET_SPENT", 300*time.Millisecond)); got != 300*time.Millisecond {
		t.Errorf("a delay of its own is %s", got)
	}
}

// A message may repeat what a tenant or a member wrote, and terminals and logs show it.
func TestTheTextOfAnErrorIsOneLineThatIsNotTooLong(t *testing.T) {
	for name, text := range map[string]string{
		"control characters": "no \x1b[31mquota\nleft",
		"a long text":        strings.Repeat("x", 2*apierror.MaxText),
	} {
		err := apierror.AsStatus(status.Error(codes.NotFound, text))
		got := status.Convert(err).Message()
		if status.Code(err) != codes.NotFound || got == "" || strings.ContainsAny(got, "\x1b\n") || len(got) > apierror.MaxText {
			t.Errorf("%s: %s: %q", name, status.Code(err), got)
		}
		if reason := apierror.ReasonOf(err); reason != "NOT_FOUND" {
			t.Errorf("%s: its reason is %q", name, reason)
		}
	}
}
