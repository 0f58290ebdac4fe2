package hub

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/plimsoll-dev/plimsoll/reconcile"
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

// idle reconciles nothing.
type idle struct{}

func (idle) Reconcile(context.Context, reconcile.Request[*corev1.ConfigMap]) (reconcile.Result, error) {
	return reconcile.Done(), nil
}

// controller-runtime has series of how reconciles end for every controller that was started, and nobody feeds those of ours.
func TestTheHubShowsNoSeriesOfItsReconcilesThatNobodyFeeds(t *testing.T) {
	g := NewWithT(t)
	const name = "shown-nowhere"
	h := &Hub{registry: prometheus.NewRegistry()}
	var err error
	h.runtime, err = reconcile.NewRuntime(reconcile.Options{Registerer: h.registry})
	g.Expect(err).NotTo(HaveOccurred())
	controller, err := reconcile.For(h.runtime, name, idle{}).Register()
	g.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- controller.Start(ctx) }()
	// named are the series about how the controller's reconciles end.
	named := func(from prometheus.Gatherer) (all []string) {
		families, err := from.Gather()
		g.Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			for _, series := range family.GetMetric() {
				for _, label := range series.GetLabel() {
					if label.GetName() == "controller" && label.GetValue() == name && strings.HasSuffix(family.GetName(), "_total") {
						all = append(all, family.GetName())
					}
				}
			}
		}
		return all
	}
	g.Eventually(func() []string { return named(metrics.Registry) }).Should(ContainElement("controller_runtime_reconcile_errors_total"))
	g.Expect(named(h.gathered())).To(BeEmpty())
	stop()
	g.Expect(<-ended).To(Succeed())
}
