package events

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

func TestALongMessageIsCutAndANamelessNamespaceIsDefault(t *testing.T) {
	h := occurrence{about: corev1.ObjectReference{Name: strings.Repeat("n", 253)}, message: object.Clip(strings.Repeat("ä", 2000))}
	e := h.event("plimsoll/c", metav1.Now())
	if len(e.Message) > 1024 || !strings.HasSuffix(e.Message, "…") || strings.ContainsRune(e.Message, '\uFFFD') {
		t.Errorf("message of %d bytes: %q", len(e.Message), e.Message)
	}
	if e.Namespace != "default" || len(e.Name) > 253 {
		t.Errorf("event %s/%s", e.Namespace, e.Name)
	}
}

func TestASinkRemembersNoMoreThanItMay(t *testing.T) {
	s := NewSink(Options{Context: context.Background(), Controller: "c", Log: slog.New(slog.DiscardHandler), Dropped: func(int) {},
		Held: func() (string, bool) { return "standby", true }})
	for i := range 2 * eventsKnown {
		s.record(occurrence{about: corev1.ObjectReference{UID: "u"}, message: fmt.Sprint(i)})
	}
	if n := len(s.known); n > eventsKnown {
		t.Errorf("%d events are remembered, want at most %d", n, eventsKnown)
	}
}

// BenchmarkARepeatedEvent is what a reconciler pays that says the same each time.
func BenchmarkARepeatedEvent(b *testing.B) {
	s := NewSink(Options{Context: b.Context(), Controller: "c", Log: slog.New(slog.DiscardHandler), Dropped: func(int) {},
		Held: func() (string, bool) { return "standby", true }})
	h := occurrence{about: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "default", Name: "one", UID: "u"}, kind: "Normal", reason: "Moved", message: "one replica"}
	b.ReportAllocs()
	for b.Loop() {
		s.record(h)
	}
}

// BenchmarkARepeatedEventInTheCorrelator is the same through client-go's correlator, which asks for a write each time until its
// filter drops the Event.
func BenchmarkARepeatedEventInTheCorrelator(b *testing.B) {
	c := record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{LRUCacheSize: eventsKnown, BurstSize: eventBurst, QPS: eventsPerSecond})
	h := occurrence{about: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "default", Name: "one", UID: "u"}, kind: "Normal", reason: "Moved", message: "one replica"}
	b.ReportAllocs()
	for b.Loop() {
		result, err := c.EventCorrelate(h.event("plimsoll/c", metav1.Now()))
		if err != nil {
			b.Fatal(err)
		}
		if !result.Skip {
			c.UpdateState(result.Event)
		}
	}
}
