package members

import (
	"context"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Instances knows the cluster behind each member's name, from the calls of [Controller.Engage], for what looks across
// controllers and members: dependencies and streams of changes.
type Instances struct {
	mu      sync.Mutex // never held over a call out of this file
	current map[string]*Instance
	watcher map[int]func(member string)
	next    int
}

// An Instance is one cluster under a member's name, from when it joins until its context ends or another takes its place.
type Instance struct {
	Cluster cluster.Cluster
	Context context.Context
}

// Seen notes that a member is there. Whoever listens is notified also when it was known, as another kind may have come.
func (s *Instances) Seen(ctx context.Context, name string, cl cluster.Cluster) {
	s.mu.Lock()
	if now := s.current[name]; (now == nil || now.Cluster != cl) && ctx.Err() == nil {
		fresh := &Instance{Cluster: cl, Context: ctx}
		if s.current == nil {
			s.current = map[string]*Instance{}
		}
		s.current[name] = fresh
		context.AfterFunc(ctx, func() { s.left(name, fresh) })
	}
	s.mu.Unlock()
	s.notify(name)
}

func (s *Instances) left(name string, was *Instance) {
	s.mu.Lock()
	is := s.current[name] == was
	if is {
		delete(s.current, name)
	}
	s.mu.Unlock()
	if is {
		s.notify(name)
	}
}

// Get returns the instance of a member; nil: it is not here.
func (s *Instances) Get(name string) *Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current[name]
}

// Names are the members that are here, in order.
func (s *Instances) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.current))
}

// Listen has f called with the name of each member that comes, changes or goes. Calls may be concurrent, and one may begin
// while forget runs.
func (s *Instances) Listen(f func(member string)) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watcher == nil {
		s.watcher = map[int]func(string){}
	}
	id := s.next
	s.next++
	s.watcher[id] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watcher, id)
	}
}

func (s *Instances) notify(name string) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.watcher))
	s.mu.Unlock()
	for _, f := range all {
		f(name)
	}
}

// Listeners is how many listen.
func (s *Instances) Listeners() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watcher)
}
