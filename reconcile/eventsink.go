package reconcile

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	eventsPending  = 128              // Events that wait to be sent; more are dropped
	eventsKnown    = 512              // Events whose repetitions are recognised
	eventWindow    = 10 * time.Minute // a repetition within it is only counted
	eventPatience  = 5 * time.Second  // for one call to the member
	eventComponent = "plimsoll"
)

// eventLimit bounds the writes about one object: 25 at once, then one in 30 s. Messages that differ each time, in a number
// for instance, are not recognised as repetitions.
var eventLimit = rateLimit{perSecond: 1.0 / 30, burst: 25}

// eventSink sends the Events of one engagement to the member, in the background, one at a time: a member that does not
// take them delays nobody and loses only the Events. The same Event is written at most once in 10 minutes; what came
// between is in its count. Of different ones about one object, those beyond eventLimit are dropped and counted as dropped. Nothing is sent while a hold of the member applies, so a standby is silent, and the client is
// fenced besides. Its goroutine lives only while there is something to send.
type eventSink struct {
	engagement *engagement
	component  string
	kind       schema.GroupVersionKind // of the objects that Events are about
	tap        func(happening)         // of ReconcileOnce: takes Events instead of the member; nil: they are sent

	mu      sync.Mutex
	pending []*series
	sending bool
	known   map[sameness]*series
	objects map[string]*bucket // by what Events are about
}

// series is one Event and its repetitions.
type series struct {
	happening happening
	name      types.NamespacedName // of the Event; empty before it was written
	count     int32
	sent      time.Time // when it was last queued
	queued    bool
}

func newEventSink(e *engagement, controller string, kind schema.GroupVersionKind) *eventSink {
	return &eventSink{engagement: e, component: eventComponent + "/" + controller, kind: kind, known: map[sameness]*series{},
		objects: map[string]*bucket{}}
}

// record counts a happening, and queues it unless it was sent lately.
func (s *eventSink) record(h happening) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tap != nil {
		s.tap(h)
		return
	}
	one := s.known[h.sameness()]
	if one == nil {
		s.makeRoom(now)
		one = &series{happening: h}
		s.known[h.sameness()] = one
	}
	one.count++
	if one.queued || (!one.sent.IsZero() && now.Sub(one.sent) < eventWindow) {
		return
	}
	if len(s.pending) >= eventsPending || s.tooMany(h) {
		s.dropped(1)
		return
	}
	one.sent, one.queued = now, true
	s.pending = append(s.pending, one)
	if !s.sending {
		s.sending = true
		go s.send()
	}
}

// tooMany tells whether enough was written about an object lately, and counts one more if not.
func (s *eventSink) tooMany(h happening) bool {
	now, about := s.engagement.controller.rt.now(), h.sameness().about
	b := s.objects[about]
	if b == nil {
		s.forgetQuiet(now)
		b = newBucket(eventLimit)
		s.objects[about] = b
	}
	if b.empty(now) {
		return true
	}
	b.take(now)
	return false
}

// forgetQuiet forgets objects about which little was written lately, and if that is not enough, any one.
func (s *eventSink) forgetQuiet(now int64) {
	if len(s.objects) < eventsKnown {
		return
	}
	for about, b := range s.objects {
		if b.full(now) {
			delete(s.objects, about)
		}
	}
	for about := range s.objects {
		if len(s.objects) < eventsKnown {
			return
		}
		delete(s.objects, about)
	}
}

// makeRoom forgets Events whose repetition would be written anew anyway, and if that is not enough, any one.
func (s *eventSink) makeRoom(now time.Time) {
	if len(s.known) < eventsKnown {
		return
	}
	for key, one := range s.known {
		if !one.queued && now.Sub(one.sent) >= eventWindow {
			delete(s.known, key)
		}
	}
	for key := range s.known {
		if len(s.known) < eventsKnown {
			return
		}
		delete(s.known, key)
	}
}

// send writes what is pending, until nothing is.
func (s *eventSink) send() {
	for {
		s.mu.Lock()
		if len(s.pending) == 0 || !s.engagement.live() {
			s.pending, s.sending = nil, false
			s.mu.Unlock()
			return
		}
		one := s.pending[0]
		s.pending = s.pending[1:]
		one.queued = false
		h, name, count := one.happening, one.name, one.count
		s.mu.Unlock()

		name, err := s.write(h, name, count)
		s.mu.Lock()
		if err != nil {
			one.sent = time.Time{} // the next repetition tries again
			s.dropped(1)
		} else {
			one.name = name
		}
		s.mu.Unlock()
		if err != nil {
			s.engagement.log.Debug("cannot record an event", "reason", h.reason, "error", err)
		}
	}
}

// write creates an Event, or brings the count of the one that is there up to date.
func (s *eventSink) write(h happening, name types.NamespacedName, count int32) (types.NamespacedName, error) {
	if reason, held := s.engagement.controller.rt.Held(s.engagement.name); held {
		return name, heldError(reason)
	}
	ctx, cancel := context.WithTimeout(s.engagement.ctx, eventPatience)
	defer cancel()
	cl, now := s.engagement.cluster.GetClient(), metav1.Now()
	if name.Name != "" {
		err := cl.Patch(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}},
			client.RawPatch(types.MergePatchType, repetition(count, now)))
		if !apierrors.IsNotFound(err) {
			return name, err
		}
	}
	event := h.event(s.component, now)
	event.Count = count
	err := cl.Create(ctx, event)
	if h.standing() && apierrors.IsAlreadyExists(err) {
		err = nil // it was written before this process
	}
	return client.ObjectKeyFromObject(event), err
}

// repetition is the patch of an Event that happened again.
func repetition(count int32, now metav1.Time) []byte {
	patch, err := json.Marshal(map[string]any{"count": count, "lastTimestamp": now})
	if err != nil {
		return []byte("{}") // a number and a time always marshal
	}
	return patch
}

func (s *eventSink) dropped(n int) {
	s.engagement.controller.rt.metrics.events.WithLabelValues(s.engagement.name).Add(float64(n))
}

// heldError is why an Event is not sent.
type heldError string

func (e heldError) Error() string { return "the member is held: " + string(e) }
