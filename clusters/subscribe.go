package clusters

import "sync"

// Event tells a subscriber that something about a member changed.
type Event struct {
	Status Status
	// Removed: the registration is gone; Status is the last one.
	Removed bool
	// BreakerOpen: requests to the member are refused now because it does not answer.
	BreakerOpen bool
}

// subscribers delivers events. Each subscriber is called from a goroutine of its own, with the newest event of each
// member that changed since it was last called for it: a slow subscriber misses what has passed, never what is, and
// holds up nobody.
type subscribers struct {
	mu     sync.Mutex
	all    map[*subscription]struct{}
	latest map[string]Event // by member, what a new subscriber is told first
	closed bool
	wg     sync.WaitGroup
}

type subscription struct {
	call func(Event)
	wake chan struct{}
	quit chan struct{}
	once sync.Once

	mu      sync.Mutex
	pending map[string]Event
	order   []string // members in pending, longest waiting first
}

func newSubscribers() *subscribers {
	return &subscribers{all: map[*subscription]struct{}{}, latest: map[string]Event{}}
}

// add subscribes call, which first hears of every member that is there.
func (s *subscribers) add(call func(Event)) (cancel func()) {
	sub := &subscription{call: call, wake: make(chan struct{}, 1), quit: make(chan struct{}), pending: map[string]Event{}}
	s.mu.Lock()
	if !s.closed {
		s.all[sub] = struct{}{}
		for _, event := range s.latest {
			sub.push(event)
		}
		s.wg.Go(sub.run)
	}
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		delete(s.all, sub)
		s.mu.Unlock()
		sub.once.Do(func() { close(sub.quit) })
	}
}

// publish hands event to every subscriber without waiting for any.
func (s *subscribers) publish(event Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if event.Removed {
		delete(s.latest, event.Status.Name)
	} else {
		s.latest[event.Status.Name] = event
	}
	for sub := range s.all {
		sub.push(event)
	}
}

func (s *subscription) push(event Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := event.Status.Name
	if _, waiting := s.pending[name]; !waiting {
		s.order = append(s.order, name)
	}
	s.pending[name] = event
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *subscription) pop() (Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) == 0 {
		return Event{}, false
	}
	name := s.order[0]
	event := s.pending[name]
	s.order = s.order[1:]
	delete(s.pending, name)
	return event, true
}

func (s *subscription) run() {
	for {
		select {
		case <-s.quit:
			return
		case <-s.wake:
		}
		for event, ok := s.pop(); ok; event, ok = s.pop() {
			select {
			case <-s.quit:
				return
			default:
			}
			s.call(event)
		}
	}
}

// stop ends all subscriptions, also those to come, and waits for the calls that are under way.
func (s *subscribers) stop() {
	s.mu.Lock()
	s.closed = true
	for sub := range s.all {
		sub.once.Do(func() { close(sub.quit) })
	}
	s.mu.Unlock()
	s.wg.Wait()
}
