package clusters

import (
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/internal/notify"
)

// heard collects what a subscriber gets.
type heard struct {
	mu     sync.Mutex
	events []Event
}

func (h *heard) hear(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// states gives "name State" in order.
func (h *heard) states() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var states []string
	for _, e := range h.events {
		state := e.Status.Name + " " + string(e.Status.State)
		if e.Removed {
			state = e.Status.Name + " removed"
		}
		states = append(states, state)
	}
	return states
}

func event(name string, state State) Event { return Event{Status: Status{Name: name, State: state}} }

func TestASubscriberHearsWhatIsThereAndThenWhatChanges(t *testing.T) {
	g := NewWithT(t)
	s, h := notify.NewSubscribers(Event.about), &heard{}
	s.Publish(event("a", StateReady))
	s.Publish(event("b", StateReady))
	s.Publish(Event{Status: Status{Name: "b"}, Removed: true})
	cancel := s.Add(h.hear)
	g.Eventually(h.states).Should(Equal([]string{"a Ready"}))
	s.Publish(event("a", StateUnreachable))
	g.Eventually(h.states).Should(Equal([]string{"a Ready", "a Unreachable"}))
	cancel()
	s.Publish(event("a", StateReady))
	s.Stop()
	g.Expect(h.states()).To(Equal([]string{"a Ready", "a Unreachable"}))
}

func TestASlowSubscriberHoldsUpNobodyAndHearsTheNewest(t *testing.T) {
	g := NewWithT(t)
	s, slow, quick := notify.NewSubscribers(Event.about), &heard{}, &heard{}
	block, blocked := make(chan struct{}), make(chan struct{}, 1)
	s.Add(func(e Event) {
		select {
		case blocked <- struct{}{}:
		default:
		}
		<-block
		slow.hear(e)
	})
	s.Add(quick.hear)
	s.Publish(event("a", StateConnecting))
	g.Eventually(blocked).Should(Receive())
	for range 100 {
		s.Publish(event("a", StateReady))
		s.Publish(event("b", StateReady))
	}
	s.Publish(event("a", StateUnreachable))
	g.Eventually(quick.states).Should(ContainElement("a Unreachable"))
	close(block)
	g.Eventually(slow.states).Should(Equal([]string{"a Connecting", "a Unreachable", "b Ready"}))
	s.Stop()
}

func TestTheProviderTellsSubscribersOfBreakersAndLeaving(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	h := &heard{}
	f.Subscribe(h.hear)
	f.secrets.put("a", api.kubeconfig())
	f.g.Eventually(h.states).Should(ContainElement("a Ready"))
	api.fault("/readyz", 500)
	f.g.Eventually(func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		last := h.events[len(h.events)-1]
		return last.BreakerOpen && last.Status.State == StateUnreachable
	}).Should(BeTrue())
	f.secrets.remove("a")
	f.g.Eventually(h.states).Should(ContainElement("a removed"))
	f.g.Expect(f.Statuses()).To(BeEmpty())
}

func TestAProbeThatChangesNothingIsNotTold(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	f.secrets.put("a", api.kubeconfig())
	f.awaitReady("a")
	f.g.Eventually(f.condition("a", ConditionPermitted)).Should(HavePrefix("True"))
	h := &heard{}
	f.Subscribe(h.hear)
	f.g.Eventually(h.states).Should(HaveLen(1))
	before := api.count("GET /readyz")
	f.g.Eventually(func() int { return api.count("GET /readyz") }).Should(BeNumerically(">", before+3))
	f.g.Expect(h.states()).To(HaveLen(1))
}
