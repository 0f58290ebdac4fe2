package leadership

import "github.com/prometheus/client_golang/prometheus"

// handovers counts how often this replica began to act on members, and for how long nobody may have acted before.
type handovers struct {
	term  *term
	acts  bool // as seen last; only the term's subscribers are called one after the other
	total prometheus.Counter
	took  prometheus.Histogram
}

func newHandovers(of *term) *handovers {
	return &handovers{
		term: of,
		total: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plimsoll_handovers_total", Help: "How often this replica began to act on members.",
		}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "plimsoll_handover_seconds",
			Help: "Time from the last sign of the replica that acted before (a renewal of its Lease, or its release) to the moment from which this one may act.",
			// A Lease that is given up is taken within a second; one whose holder died after its whole duration.
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 20, 30, 60, 120},
		}),
	}
}

// register follows the term from now on.
func (h *handovers) register(registerer prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{h.total, h.took} {
		if err := registerer.Register(collector); err != nil {
			return err
		}
	}
	h.term.Subscribe(h.update)
	return nil
}

func (h *handovers) update() {
	acts := h.term.MineAny()
	if acts && !h.acts {
		h.total.Inc()
		if took, known := h.term.handedOver(); known {
			h.took.Observe(took.Seconds())
		}
	}
	h.acts = acts
}
