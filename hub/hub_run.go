package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/hub/leadership"
)

// Run runs the replica until ctx ends or a part of it fails, and then stops it in this order: it says that it is not
// ready, takes up no new work, lets what it began come to an end, releases the Lease so that another replica takes over at
// once, and closes its servers and caches when calls have had the time to be routed elsewhere: until then it forwards to its
// successor, and ends the connections of those who call it one by one, with an answer. It is called once.
func (h *Hub) Run(ctx context.Context) error {
	h.started = time.Now()
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var tasks sync.WaitGroup
	for _, t := range h.tasks {
		tasks.Go(func() {
			err := t.run(running)
			if running.Err() == nil {
				cancel(fmt.Errorf("%s: %w", t.name, errors.Join(err, errEnded)))
			} else if err != nil && !errors.Is(err, context.Canceled) {
				h.log.Warn("stopping", "part", t.name, "error", err)
			}
		})
	}
	defer h.provider.Subscribe(h.memberChanged)()
	owning, yield := context.WithCancel(running)
	defer yield()
	yielded := h.contend(owning, cancel)
	h.announce()

	select {
	case <-ctx.Done():
	case <-running.Done():
	}
	failure, stopping := context.Cause(running), time.Now()
	defer time.AfterFunc(time.Until(partsAt(&h.config, stopping)), h.listeners.webhook.Leave).Stop()
	h.holds.stop()
	h.drain()
	h.flushFleet()
	yield()
	<-yielded
	h.serveOn(running, stopping)
	cancel(nil)
	h.wait(&tasks)
	h.peers.close()
	h.forwarder.Close()
	return failure
}

// contend keeps contending for the Lease until ctx ends; the channel is closed when it has been given up.
func (h *Hub) contend(ctx context.Context, fail context.CancelCauseFunc) <-chan struct{} {
	yielded := make(chan struct{})
	l, ok := h.ownership.(*leadership.Lease)
	if !ok {
		close(yielded)
		return yielded
	}
	go func() {
		defer close(yielded)
		if err := l.Contend(ctx); err != nil {
			fail(err)
		}
	}()
	return yielded
}

// serveOn returns when a stop that began at a time may close the servers, or when a part of the hub has failed. A Service takes
// a moment to route calls to other replicas; one that finds nobody listening is admitted without us.
func (h *Hub) serveOn(running context.Context, stopping time.Time) {
	timer := time.NewTimer(time.Until(servesUntil(&h.config, stopping)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-running.Done():
	}
}

// partsAt is when a replica whose stop began at a time begins to end the connections to its webhook, each with an answer. By
// then calls are routed elsewhere, and there is as much time again for connections with few calls.
func partsAt(config *config.Config, stopping time.Time) time.Time {
	return stopping.Add(config.Webhook.StopDelay / 2)
}

// servesUntil is when a replica whose stop began at a time may close its servers, at the earliest.
func servesUntil(config *config.Config, stopping time.Time) time.Time {
	return stopping.Add(config.Webhook.StopDelay)
}

// drain waits for the reconciles that are under way. One that takes too long runs into the fence, which is shut before the
// Lease is given up.
func (h *Hub) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := h.runtime.Drain(ctx); err != nil {
		h.log.Warn("reconciles are still running; from now on they cannot write", "waited", drainTime)
	}
}

// wait waits for the parts to end, but not forever.
func (h *Hub) wait(tasks *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() {
		tasks.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(stopTime):
		h.log.Warn("parts of the hub do not stop; exiting anyway", "waited", stopTime)
	}
}

// memberChanged hears of every change of a member's status.
func (h *Hub) memberChanged(event clusters.Event) {
	h.holds.member(event)
	h.events.member(event)
	if event.Removed {
		h.admission.Forget(event.Status.Name)
		h.installer.Forget(context.Background(), event.Status.Name, types.NamespacedName{})
		h.kinds.Forget(event.Status.Name)
	}
}
