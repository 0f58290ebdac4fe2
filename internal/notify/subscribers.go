package notify

import "sync"

// Subscribers delivers events about things that have names. Each subscriber is called from a goroutine of its own, with the newest
// event about each thing that changed since it was last called for it: a slow subscriber misses what has passed, never what is, and
// holds up nobody.
type Subscribers[E any] struct {
	about func(E) (name string, last bool)

	mu     sync.Mutex
	all    map[*subscription[E]]struct{}
	latest map[string]E // by name, what a new subscriber gets first
	closed bool
	wg     sync.WaitGroup
}

type subscription[E any] struct {
	call func(E)
	wake Wake
	quit chan struct{}
	once sync.Once

	mu      sync.Mutex
	pending map[string]E
	order   []string // names in pending, longest waiting first
}

// NewSubscribers has nobody subscribed. About says what an event is about, and whether it is the last one about that.
func NewSubscribers[E any](about func(E) (name string, last bool)) *Subscribers[E] {
	return &Subscribers[E]{about: about, all: map[*subscription[E]]struct{}{}, latest: map[string]E{}}
}

// Add subscribes call, which first hears of everything that is there. After cancel no further call begins.
func (s *Subscribers[E]) Add(call func(E)) (cancel func()) {
	sub := &subscription[E]{call: call, wake: New(), quit: make(chan struct{}), pending: map[string]E{}}
	s.mu.Lock()
	if !s.closed {
		s.all[sub] = struct{}{}
		for name, event := range s.latest {
			sub.push(name, event)
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

// Publish hands event to every subscriber without waiting for any.
func (s *Subscribers[E]) Publish(event E) {
	name, last := s.about(event)
	s.mu.Lock()
	defer s.mu.Unlock()
	if last {
		delete(s.latest, name)
	} else {
		s.latest[name] = event
	}
	for sub := range s.all {
		sub.push(name, event)
	}
}

func (s *subscription[E]) push(name string, event E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, waiting := s.pending[name]; !waiting {
		s.order = append(s.order, name)
	}
	s.pending[name] = event
	s.wake.Signal()
}

func (s *subscription[E]) pop() (event E, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) == 0 {
		return event, false
	}
	name := s.order[0]
	event = s.pending[name]
	s.order = s.order[1:]
	delete(s.pending, name)
	return event, true
}

func (s *subscription[E]) run() {
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

// Stop ends all subscriptions, also those to come, and waits for the calls that are under way.
func (s *Subscribers[E]) Stop() {
	s.mu.Lock()
	s.closed = true
	for sub := range s.all {
		sub.once.Do(func() { close(sub.quit) })
	}
	s.mu.Unlock()
	s.wg.Wait()
}
