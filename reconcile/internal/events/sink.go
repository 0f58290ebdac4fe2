package events

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	eventsPending  = 128              // Events that wait to be sent; more are dropped
	eventsKnown    = 512              // Events whose repetitions are recognised
	eventWindow    = 10 * time.Minute // a repetition within it is only counted
	eventPatience  = 5 * time.Second  // for one call to the member
	eventComponent = "plimsoll"
)

// Of different Events about one object so many are written at once, and then one in so many seconds. Messages that differ each
// time, in a number for instance, are not recognised as repetitions.
const (
	eventBurst      = 25
	eventsPerSecond = 1.0 / 30
)

// Options are what a sink needs of its controller and of the member.
type Options struct {
	Context    context.Context // of the member: nothing is sent once it has ended
	Client     client.Client   // of the member
	Controller string
	Kind       schema.GroupVersionKind           // of the objects that Events are about
	Held       func() (reason string, held bool) // that nothing may be sent now, and why
	Dropped    func(n int)                       // counts Events that were not written
	Log        *slog.Logger
}

// Sink sends the Events of one controller to one member, in the background, one at a time: a member that does not
// take them delays nobody and loses only the Events. The same Event is written at most once in 10 minutes; what came
// between is in its count. Of different ones about one object, those beyond eventBurst are dropped and counted as dropped; that
// is client-go's filter. Nothing is sent while a hold of the member applies, so a standby is silent, and the client is fenced
// besides. Its goroutine lives only while there is something to send. Safe for concurrent use.
type Sink struct {
	options   Options
	component string
	filter    *record.EventSourceObjectSpamFilter // by what Events are about

	mu      sync.Mutex
	tap     func(kind, reason, message string) // takes Events instead of the member; nil: they are sent
	pending []*series
	sending bool
	known   map[sameness]*series
}

// series is one Event and its repetitions.
type series struct {
	occurrence occurrence
	name       types.NamespacedName // of the Event; empty before it was written
	count      int32
	sent       time.Time // when it was last queued
	queued     bool
}

// NewSink creates a sink. It starts nothing.
func NewSink(o Options) *Sink {
	return &Sink{
		options: o, component: eventComponent + "/" + o.Controller, known: map[sameness]*series{},
		filter: record.NewEventSourceObjectSpamFilter(eventsKnown, eventBurst, eventsPerSecond, clock.RealClock{}, aboutKey),
	}
}

// aboutKey names what an Event is about, for the filter.
func aboutKey(e *corev1.Event) string { return occurrence{about: e.InvolvedObject}.sameness().about }

// Divert has Events given to tap instead of the member.
func (s *Sink) Divert(tap func(kind, reason, message string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tap = tap
}

// record counts an occurrence, and queues it unless it was sent lately.
func (s *Sink) record(h occurrence) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tap != nil {
		s.tap(h.kind, h.reason, h.message)
		return
	}
	one := s.known[h.sameness()]
	if one == nil {
		s.makeRoom(now)
		one = &series{occurrence: h}
		s.known[h.sameness()] = one
	}
	one.count++
	if one.queued || (!one.sent.IsZero() && now.Sub(one.sent) < eventWindow) {
		return
	}
	if len(s.pending) >= eventsPending || s.filter.Filter(&corev1.Event{InvolvedObject: h.about}) {
		s.options.Dropped(1)
		return
	}
	one.sent, one.queued = now, true
	s.pending = append(s.pending, one)
	if !s.sending {
		s.sending = true
		go s.send()
	}
}

// makeRoom forgets Events whose repetition would be written again anyway, and if that is not enough, any one.
func (s *Sink) makeRoom(now time.Time) {
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
func (s *Sink) send() {
	for {
		s.mu.Lock()
		if len(s.pending) == 0 || s.options.Context.Err() != nil {
			s.pending, s.sending = nil, false
			s.mu.Unlock()
			return
		}
		one := s.pending[0]
		s.pending = s.pending[1:]
		one.queued = false
		h, name, count := one.occurrence, one.name, one.count
		s.mu.Unlock()

		name, err := s.write(h, name, count)
		s.mu.Lock()
		if err != nil {
			one.sent = time.Time{} // the next repetition tries again
			s.options.Dropped(1)
		} else {
			one.name = name
		}
		s.mu.Unlock()
		if err != nil {
			s.options.Log.Debug("cannot record an event", "reason", h.reason, "error", err)
		}
	}
}

// write creates an Event, or brings the count of the one that is there up to date.
func (s *Sink) write(h occurrence, name types.NamespacedName, count int32) (types.NamespacedName, error) {
	if reason, held := s.options.Held(); held {
		return name, heldError(reason)
	}
	ctx, cancel := context.WithTimeout(s.options.Context, eventPatience)
	defer cancel()
	cl, now := s.options.Client, metav1.Now()
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

// heldError is why an Event is not sent.
type heldError string

func (e heldError) Error() string { return "the member is held: " + string(e) }
