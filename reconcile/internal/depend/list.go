package depend

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/paging"
)

const (
	// maxPages and maxObjects bound one list: 50,000 objects, as many as other answers of a member may have. A page, which is asked to
	// have 500, counts however few it has, so that a list without an end does. Where there are more, dependencies are read live.
	maxPages   = 100
	maxObjects = 50_000
	// maxVersion bounds resource versions, in bytes: one is kept of each object that is depended on, and one of each watch. Those of API
	// servers are numbers.
	maxVersion = 1 << 10
)

// endlessError is about a list that has more than is read.
type endlessError struct{ place place }

func (e *endlessError) Error() string {
	return fmt.Sprintf("the list of %s in namespace %q has more than %d objects or %d pages; dependencies there are read one by one",
		e.place.gvk.Kind, e.place.namespace, maxObjects, maxPages)
}

// list reads all that is there now, page by page, and keeps facts of what is depended on; the rest of a page is dropped before the
// next is asked for. What it returns has a resource version only.
func (s *placeStore) list(ctx context.Context, source client.Reader) (runtime.Object, error) {
	p := s.watch.place
	wanted, listed := s.watch.wanted()
	page, all := p.list(), &metainternalversion.List{}
	var pages, objects int
	var failed error
	each := func() (more bool) {
		pages++
		objects += meta.LenList(page)
		if failed = keepWanted(page, wanted, listed); failed == nil && page.GetContinue() != "" && (pages >= maxPages || objects >= maxObjects) {
			failed = &endlessError{p}
		}
		all.ResourceVersion = cmp.Or(all.ResourceVersion, page.GetResourceVersion()) // of the first: what later pages have newer comes as events
		return failed == nil
	}
	restart := func() {
		all.ResourceVersion = ""
		pages, objects = 0, 0 // a list begins anew twice at most
		for e := range listed {
			listed[e] = facts{}
		}
	}
	err := paging.Pages(ctx, source, page, each, restart, p.options(&metav1.ListOptions{}))
	if err = cmp.Or(failed, err); err != nil {
		return nil, err
	}
	s.listed = listed
	return all, nil
}

// keepWanted takes the facts of what is depended on from a page.
func keepWanted(page client.ObjectList, wanted map[types.NamespacedName]*entry, into map[*entry]facts) error {
	if err := checkVersion(page.GetResourceVersion()); err != nil {
		return err
	}
	return meta.EachListItem(page, func(item runtime.Object) error {
		obj, ok := item.(client.Object)
		if !ok {
			return nil
		}
		e := wanted[client.ObjectKeyFromObject(obj)]
		if e == nil {
			return nil
		}
		into[e] = factsOf(obj)
		return checkVersion(obj.GetResourceVersion())
	})
}

// wanted are the entries in the place by name, and the facts of each of them as if none were there.
func (w *placeWatch) wanted() (entries map[types.NamespacedName]*entry, absent map[*entry]facts) {
	w.ds.mu.Lock()
	defer w.ds.mu.Unlock()
	entries, absent = make(map[types.NamespacedName]*entry, len(w.entries)), make(map[*entry]facts, len(w.entries))
	for name, e := range w.entries {
		entries[name], absent[e] = e, facts{}
	}
	return entries, absent
}

func checkVersion(version string) error {
	if len(version) > maxVersion {
		return fmt.Errorf("a resource version has %d bytes; at most %d are read", len(version), maxVersion)
	}
	return nil
}

// checkedWatch passes events on up to one whose resource version no API server would have sent: the last one is kept, to go on from. Unlike
// apimachinery's filtered watch it ends when it is stopped, and not when its reader takes one event more.
type checkedWatch struct {
	apiwatch.Interface
	events chan apiwatch.Event
	stop   func()
}

func newCheckedWatch(of apiwatch.Interface) *checkedWatch {
	stopped := make(chan struct{})
	w := &checkedWatch{Interface: of, events: make(chan apiwatch.Event), stop: sync.OnceFunc(func() {
		close(stopped)
		of.Stop()
	})}
	go func() {
		defer close(w.events)
		for event := range of.ResultChan() {
			select {
			case w.events <- checked(event):
			case <-stopped:
				return
			}
		}
	}()
	return w
}

// ResultChan has the events.
func (w *checkedWatch) ResultChan() <-chan apiwatch.Event { return w.events }

// Stop ends the watch.
func (w *checkedWatch) Stop() { w.stop() }

// checked is the event, or an error in the place of one that is not read.
func checked(event apiwatch.Event) apiwatch.Event {
	obj, ok := event.Object.(client.Object)
	if !ok {
		return event
	}
	if err := checkVersion(obj.GetResourceVersion()); err != nil {
		return apiwatch.Event{Type: apiwatch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadGateway, Message: err.Error()}}
	}
	return event
}
