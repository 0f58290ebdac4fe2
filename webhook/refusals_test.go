package webhook

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

// Wherever a call is refused, its refusal counts; that of a call that is in order does not, nor one that the others' calls leave no room
// for.
func TestEveryRefusalOfAPodCounts(t *testing.T) {
	pods := newHub(t, toSpot)
	pods.refusals = calls.NewRefusals()
	crowded := func() *httptest.ResponseRecorder {
		pods.options.Metrics.reading.Add(maxPodBytes)
		defer pods.options.Metrics.reading.Add(-maxPodBytes)
		return pods.call(pods.path(), reviewOf("1", ""))
	}
	for name, call := range map[string]struct {
		send   func() *httptest.ResponseRecorder
		status int
		counts float64
	}{
		"a pod":              {func() *httptest.ResponseRecorder { return pods.call(pods.path(), reviewOf("1", "")) }, http.StatusOK, 0},
		"others' pods":       {crowded, http.StatusTooManyRequests, 0},
		"no pod":             {func() *httptest.ResponseRecorder { return pods.call(pods.path(), []byte("[")) }, http.StatusBadRequest, 1},
		"a pod, wrong token": {func() *httptest.ResponseRecorder { return pods.call("/webhook/v1/members/eu/1/pods", nil) }, http.StatusNotFound, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pace := pods.refusals.Pace("eu")
			pace.SetLimit(0) // nothing comes back meanwhile
			before := pace.Tokens()
			g.Expect(call.send().Code).To(Equal(call.status))
			g.Expect(before - pace.Tokens()).To(Equal(call.counts))
		})
	}
}

func TestRefusalsOfWhatIsNoCallCountForTheirAddress(t *testing.T) {
	pods := newHub(t, toSpot)
	pods.refusals = calls.NewRefusals()
	for name, call := range map[string]struct {
		method, path string
		status       int
	}{
		"another path":   {http.MethodPost, "/", http.StatusNotFound},
		"part of a path": {http.MethodPost, "/webhook/v1/members/eu/", http.StatusNotFound},
		"another method": {http.MethodGet, pods.path(), http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			const address = "192.0.2.1" // of all that package httptest makes
			pace := pods.refusals.Pace(address)
			pace.SetLimit(0) // nothing comes back meanwhile
			before := pace.Tokens()
			g.Expect(pods.do(call.method, call.path, "application/json", nil).Code).To(Equal(call.status))
			g.Expect(before - pace.Tokens()).To(Equal(1.0))
		})
	}
}
