package clusters

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-dev/plimsoll/internal/notify"
)

// identifyEvery is how many probes apart a healthy member is asked for its version and identity again.
const identifyEvery = 30

// health is what is known about one member's API server. Its loop probes; everyone else reads snapshots.
type health struct {
	prober    *prober
	breaker   *breaker
	interval  time.Duration // between probes of a healthy member
	threshold int           // failures in a row after which a healthy member is Unreachable
	retry     wait.Backoff  // between probes after a failure
	observe   func(time.Duration)
	changed   func() // called after each probe, outside the lock

	probeNow notify.Wake

	mu   sync.RWMutex // never held while a member is asked
	seen healthReport
}

// healthReport is a snapshot of health.
type healthReport struct {
	probed     bool     // at least one probe has ended
	reachable  bool     // the last probes say that the member can be worked in
	problem    *problem // why not, nil while reachable or before the first probe
	failures   int      // probes that failed in a row
	identity   identity
	identified bool // the identity was asked for and answered, as far as it is permitted
	stranger   bool // another cluster answers than the one that was identified first
	lastProbe  time.Time
	lastAnswer time.Time     // the end of the last good probe
	latency    time.Duration // of the answer to the last good probe
}

func (h *health) report() healthReport {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.seen
}

// kick asks for a probe now.
func (h *health) kick() { h.probeNow.Signal() }

// watch probes until ctx ends. A healthy member is probed every interval; after a failure the next probes come sooner,
// so that three failures take a few seconds where the server answers at once, and less than half a minute where it hangs.
func (h *health) watch(ctx context.Context) {
	retry := h.retry
	for count := 0; ctx.Err() == nil; count++ {
		err := h.probe(ctx, count)
		if ctx.Err() != nil {
			return
		}
		pause := h.interval
		if err != nil {
			pause = retry.Step()
		} else {
			retry = h.retry
		}
		h.changed()
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-h.probeNow:
		}
		timer.Stop()
	}
}

// probe asks the member once and takes down the outcome.
func (h *health) probe(ctx context.Context, count int) error {
	before, start := h.report(), time.Now()
	err := h.prober.ready(ctx) // each request has a time of its own
	latency := time.Since(start)
	id := before.identity
	if err == nil && (!before.reachable || before.failures > 0 || count%identifyEvery == 0) {
		id, err = h.prober.identify(ctx)
	}
	h.observe(time.Since(start))
	if err != nil {
		h.failed(err)
		return err
	}
	h.succeeded(id, latency)
	return nil
}

// begin makes seen what is known before the first probe.
func (h *health) begin(seen healthReport) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = seen
}

// otherCluster is the problem of a member whose server has become another cluster.
func otherCluster() *problem {
	return unreachable(ReasonOtherCluster, "the cluster at the server's address is not the one that was there before")
}

func (h *health) failed(err error) {
	h.mu.Lock()
	h.seen.failures++
	h.seen.lastProbe = time.Now()
	down := !h.seen.reachable || h.seen.failures >= h.threshold
	if down {
		h.seen.reachable, h.seen.problem = false, classify(err)
	}
	h.seen.probed = true
	h.mu.Unlock()
	if down {
		h.breaker.open()
	}
}

func (h *health) succeeded(id identity, latency time.Duration) {
	h.mu.Lock()
	known := h.seen.identity.uid
	if id.uid == "" {
		id.uid = known // a server that refuses to say which cluster it is has said nothing else
	}
	h.seen.stranger = known != "" && known != id.uid
	h.seen.failures, h.seen.probed, h.seen.lastProbe, h.seen.latency = 0, true, time.Now(), latency
	h.seen.lastAnswer = h.seen.lastProbe
	stranger := h.seen.stranger
	if stranger {
		h.seen.reachable = false
		h.seen.problem = otherCluster()
	} else {
		h.seen.reachable, h.seen.problem, h.seen.identity, h.seen.identified = true, nil, id, true
	}
	h.mu.Unlock()
	if stranger {
		h.breaker.open()
		return
	}
	h.breaker.close()
}
