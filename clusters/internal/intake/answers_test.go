package intake

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
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

// A client would decode it several times over, each of many kinds.
func TestALongVersionIsRefusedBeforeItIsDecoded(t *testing.T) {
	took := Intake{Member: "a", Paths: quantities.NewPaths(scheme.Scheme), Event: 1 << 20}.Of(10, 1<<20)
	long := strings.Repeat("%", MaxToken+1)
	for path, text := range map[string]string{
		"/api/v1/pods":            `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"` + long + `"},"items":[]}`,
		"/api/v1/pods?watch=true": `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"` + long + `"}}}`,
	} {
		g := NewWithT(t)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a"+path, nil)
		g.Expect(err).NotTo(HaveOccurred())
		resp, err := took.Guard(answering(http.StatusOK, "application/json", text)).RoundTrip(req)
		g.Expect(err).NotTo(HaveOccurred())
		n, err := io.Copy(io.Discard, resp.Body)
		g.Expect(err).To(MatchError(quantities.ErrLongToken), path)
		g.Expect(err).To(MatchError(ErrUnreadable), path)
		g.Expect(n).To(BeZero(), path)
		g.Expect(resp.Body.Close()).To(Succeed())
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

// The live heap is small: answers of some MiB that become garbage would double it. Those that cannot be used count as well.
func TestLargeAnswersShareMemory(t *testing.T) {
	const size = 4 << 20
	filling := strings.Repeat("a", size)
	for name, text := range map[string]string{
		"an answer":           `{"items":[],"other":"` + filling + `"}`,
		"too many objects":    `{"items":[{},{},{}],"other":"` + filling + `"}`,
		"nothing of the sort": `{"items":` + filling,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			took := Intake{Member: "a", Paths: quantities.NewPaths(scheme.Scheme)}.Of(2, 2*size)
			way := took.Guard(answering(http.StatusOK, "application/json", text))
			least := uint64(math.MaxUint64)
			for range 10 { // others allocate as well, and memory that nobody used for a second is given back
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				resp, err := way.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
				g.Expect(err).NotTo(HaveOccurred())
				_, err = io.Copy(io.Discard, resp.Body)
				g.Expect(err == nil).To(Equal(name == "an answer"), "%v", err)
				g.Expect(resp.Body.Close()).To(Succeed())
				runtime.ReadMemStats(&after)
				least = min(least, after.TotalAlloc-before.TotalAlloc)
			}
			g.Expect(least).To(BeNumerically("<", size/2))
		})
	}
}

// What has been read must stay as it is while another answer is read into memory that was shared before.
func TestAnswersThatAreReadAtOnceHaveMemoryOfTheirOwn(t *testing.T) {
	g := NewWithT(t)
	took := Intake{Member: "a", Paths: quantities.NewPaths(scheme.Scheme)}.Of(2, 4<<20)
	open := func(letter string) (text string, body io.ReadCloser) {
		text = `{"items":[],"other":"` + strings.Repeat(letter, 1<<20) + `"}`
		resp, err := took.Guard(answering(http.StatusOK, "application/json", text)).RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		g.Expect(err).NotTo(HaveOccurred())
		return text, resp.Body
	}
	want, body := open("a")
	is := make([]byte, len(want))
	_, err := io.ReadFull(body, is[:100])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(body.Close()).To(Succeed(), "closed while it is read")
	for range 3 {
		other, second := open("b")
		text, err := io.ReadAll(second)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text) == other).To(BeTrue())
	}
	_, err = io.ReadFull(body, is[100:])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(is) == want).To(BeTrue())
	_, err = body.Read(is)
	g.Expect(err).To(MatchError(io.EOF))
	_, err = body.Read(is)
	g.Expect(err).To(MatchError(io.EOF))
}
