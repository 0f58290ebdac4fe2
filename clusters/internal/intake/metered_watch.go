package intake

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// meteredWatch passes events on through a function.
type meteredWatch struct {
	watch.Interface
	events chan watch.Event
	stop   func()
}

func newMeteredWatch(of watch.Interface, pass func(watch.Event) (watch.Event, bool)) *meteredWatch {
	stopped := make(chan struct{})
	w := &meteredWatch{Interface: of, events: make(chan watch.Event), stop: sync.OnceFunc(func() {
		close(stopped)
		of.Stop()
	})}
	go func() {
		defer close(w.events)
		for event := range of.ResultChan() {
			if event, ok := pass(event); ok {
				select {
				case w.events <- event:
				case <-stopped:
					return
				}
			}
		}
	}()
	return w
}

// ResultChan has the events.
func (w *meteredWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch.
func (w *meteredWatch) Stop() { w.stop() }
