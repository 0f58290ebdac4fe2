package webhook

import (
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

// Wherever a call is refused, its refusal counts; that of a call that is in order does not.
func TestEveryRefusalOfAPodCounts(t *testing.T) {
	pods := newHub(t, toSpot)
	pods.refusals = calls.NewRefusals()
	for name, call := range map[string]struct {
		send   func() *httptest.ResponseRecorder
		counts float64
	}{
		"a pod":              {func() *httptest.ResponseRecorder { return pods.call(pods.path(), reviewOf("1", "")) }, 0},
		"no pod":             {func() *httptest.ResponseRecorder { return pods.call(pods.path(), []byte("[")) }, 1},
		"a pod, wrong token": {func() *httptest.ResponseRecorder { return pods.call("/webhook/v1/members/eu/1/pods", nil) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			pace := pods.refusals.Pace("eu")
			pace.SetLimit(0) // nothing comes back meanwhile
			before := pace.Tokens()
			call.send()
			NewWithT(t).Expect(before - pace.Tokens()).To(Equal(call.counts))
		})
	}
}
