package hub

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Each scrape takes memory for all series, so that more of them at a time would take any.
func TestFewScrapesAreAnsweredAtATime(t *testing.T) {
	g := NewWithT(t)
	gathering, goOn := make(chan struct{}, 2*maxScrapes), make(chan struct{})
	handler := scrapes(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		gathering <- struct{}{}
		<-goOn
		return nil, nil
	}))
	scrape := func() int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, metricsPath, nil))
		return answer.Code
	}
	var all sync.WaitGroup
	codes := make(chan int, 2*maxScrapes)
	for range 2 * maxScrapes {
		all.Go(func() { codes <- scrape() })
	}
	for range maxScrapes {
		g.Eventually(codes).Should(Receive(Equal(http.StatusServiceUnavailable)), "one that is too many is refused while the others wait")
	}
	close(goOn)
	all.Wait()
	g.Expect(gathering).To(HaveLen(maxScrapes))
	for range maxScrapes {
		g.Expect(<-codes).To(Equal(http.StatusOK))
	}
	g.Expect(scrape()).To(Equal(http.StatusOK), "there is room again")
}
