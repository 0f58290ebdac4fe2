package intake

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

// answering is a way on which each request is answered with a text of a media type.
func answering(status int, media, text string) http.RoundTripper {
	return RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {media}}, ContentLength: int64(len(text)), Body: io.NopCloser(strings.NewReader(text)),
		}, nil
	})
}

// read sends a request on its way, and returns how many bytes its answer has.
func read(t *testing.T, way http.RoundTripper) int64 {
	t.Helper()
	g := NewWithT(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/apis/apps/v1", nil)
	g.Expect(err).NotTo(HaveOccurred())
	resp, err := way.RoundTrip(req)
	g.Expect(err).NotTo(HaveOccurred())
	n, err := io.Copy(io.Discard, resp.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resp.Body.Close()).To(Succeed())
	return n
}

// Nothing looks through a text, and who reads an answer as it is decodes it all the same.
func TestOfATextOnlyTheBeginningIsRead(t *testing.T) {
	g := NewWithT(t)
	took := Intake{Member: "a", Paths: quantities.NewPaths(scheme.Scheme)}.Of(10, 1<<20)
	text := `{"resources":[{"name":"pods","kind":"Pod"}` + strings.Repeat(`,{}`, 100_000) + `]}`
	for _, status := range []int{http.StatusOK, http.StatusForbidden} {
		g.Expect(read(t, took.Guard(answering(status, "text/plain", text)))).To(BeEquivalentTo(maxText))
		g.Expect(read(t, took.Guard(answering(status, "text/plain", "ok")))).To(BeEquivalentTo(2))
	}
}

// Pages that are small one by one take as long to decode as large ones.
func TestPagesOfACachesListArePacedHoweverSmallTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		pace, waited := counted()
		took := Intake{Member: "a", Paths: quantities.NewPaths(scheme.Scheme), Pace: pace}.Of(MaxPage, 8<<20)
		const size, pages = 128 << 10, 1000
		page := `{"items":[],"other":"` + strings.Repeat("a", size) + `"}`
		for range pages {
			read(t, took.Guard(answering(http.StatusOK, "application/json", page)))
		}
		g.Expect(*waited).To(BeZero(), "what reconcilers ask for has a budget of its own")
		began := time.Now()
		for range pages {
			read(t, took.Paced().Guard(answering(http.StatusOK, "application/json", page)))
		}
		g.Expect(time.Since(began)).To(BeNumerically(">=", time.Second*(size*pages-paceBurst)/paceRate))
		const small = 2 * paceRate / leastPage
		began = time.Now()
		for range small {
			read(t, took.Paced().Guard(answering(http.StatusOK, "application/json", `{"items":[]}`)))
		}
		g.Expect(time.Since(began)).To(BeNumerically("~", 2*time.Second, 100*time.Millisecond))
	})
}
