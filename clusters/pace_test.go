package clusters

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

// TestEventsWithoutEndAreReadAtAPace reads events of a member that sends as fast as it can.
func TestEventsWithoutEndAreReadAtAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		const seconds = 10
		const burst, more = paceBurst / eventCost, seconds * paceRate / eventCost
		event := `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"}}`
		took := intake{member: "a", shapes: quantities.NewShapes(scheme.Scheme), event: 1 << 20, objects: 10, pace: newPace()}
		way := took.guard(roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(strings.Repeat(event, burst+more)))}, nil
		}))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/api/v1/pods?watch=true", nil)
		g.Expect(err).NotTo(HaveOccurred())
		resp, err := way.RoundTrip(req)
		g.Expect(err).NotTo(HaveOccurred())
		began := time.Now()
		_, err = io.CopyN(io.Discard, resp.Body, int64(burst*len(event)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(time.Since(began)).To(BeZero(), "a first list as events does not wait")
		_, err = io.Copy(io.Discard, resp.Body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(time.Since(began)).To(BeNumerically("~", seconds*time.Second, time.Second))
		g.Expect(resp.Body.Close()).To(Succeed())
	})
}
