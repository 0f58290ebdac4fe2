package rest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

// Whoever waits for as long as the header says does not come too early.
func TestRetryAfterIsInWholeSecondsAndNotBeforeTheDelayIsOver(t *testing.T) {
	for delay, want := range map[time.Duration]string{
		0: "", time.Millisecond: "1", time.Second: "1", 1200 * time.Millisecond: "2", 10 * time.Second: "10",
	} {
		answer, refused := httptest.NewRecorder(), apierror.WithDelay(status.New(codes.ResourceExhausted, "spent"), "FILTER_BUDGET_SPENT", delay)
		writeError(t.Context(), nil, &runtime.JSONPb{}, answer, nil, refused.Err())
		if got := answer.Header().Get("Retry-After"); got != want || answer.Code != http.StatusTooManyRequests {
			t.Errorf("with a delay of %s: HTTP %d, Retry-After %q, want %q", delay, answer.Code, got, want)
		}
	}
}
