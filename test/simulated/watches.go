package simulated

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Fault is what becomes of watches while it lasts.
type Fault int

// Faults of watches.
const (
	// None: watches stay open until their time-out.
	None Fault = iota
	// Ends: a watch is answered and ends at once.
	Ends
	// EndsAfterEvents: a watch gets a bookmark and then ends.
	EndsAfterEvents
	// Cut: a watch gets a bookmark, and then its stream is reset.
	Cut
	// Unavailable: watches are answered with 503.
	Unavailable
	// Expired: a watch is ended because its resource version is too old.
	Expired
	faults
)

// Faults are all that there are.
func Faults() []Fault {
	var all []Fault
	for f := Ends; f < faults; f++ {
		all = append(all, f)
	}
	return all
}

// String names the fault.
func (f Fault) String() string {
	return [...]string{"none", "ends", "ends after events", "cut", "unavailable", "expired"}[f]
}

// watch is one that is open.
type watch struct {
	of     collection
	key    string // path and selectors
	only   string // the name of the only object that it is about; empty: all
	none   bool   // it selects by labels, which no object has
	events chan event
	end    chan struct{}
}

type event struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

// offer shows an event to a watch. One that does not keep up ends, as in an API server; the caller holds the member's mu.
func (w *watch) offer(kind string, object any) {
	select {
	case w.events <- event{kind, object}:
	default:
		w.finish()
	}
}

func (w *watch) finish() {
	select {
	case <-w.end:
	default:
		close(w.end)
	}
}

// Break makes all watches of the member end, now and whenever they are opened, in the way of the fault; None ends that.
func (m *Member) Break(fault Fault) {
	m.mu.Lock()
	m.fault = fault
	m.mu.Unlock()
	if fault != None {
		m.EndWatches()
	}
}

// EndWatches ends all watches that are open.
func (m *Member) EndWatches() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for open := range m.watches {
		open.finish()
	}
}

// Watched returns what is watched now: path and selectors of each watch that is open and lasts, in order.
func (m *Member) Watched() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := map[string]bool{}
	for open := range m.watches {
		keys[open.key] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

func isWatch(r *http.Request) bool {
	watch, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	return watch
}

func (m *Member) serveWatch(w http.ResponseWriter, r *http.Request, c collection) {
	query := r.URL.Query()
	timeout, err := strconv.Atoi(query.Get("timeoutSeconds"))
	if err != nil {
		timeout = 300
	}
	open := &watch{
		of: c, key: c.path + "?" + query.Get("labelSelector") + query.Get("fieldSelector"),
		none: query.Get("labelSelector") != "", events: make(chan event, 100), end: make(chan struct{}),
	}
	if selector := query.Get("fieldSelector"); len(selector) > len("metadata.name=") {
		open.only = selector[len("metadata.name="):]
	}
	m.mu.Lock()
	fault := m.fault
	if fault == None {
		m.watches[open] = struct{}{}
		if query.Get("sendInitialEvents") == "true" {
			m.initial(open, r)
		}
	}
	bookmark := m.bookmark(c, nil)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watches, open)
	}()
	if fault != None {
		breakWatch(w, fault, bookmark)
		return
	}
	open.serve(w, r, time.Duration(timeout)*time.Second)
}

// initial has a watch begin with all objects; the caller holds mu.
func (m *Member) initial(open *watch, r *http.Request) {
	for _, object := range m.selected(r, open.of) {
		open.offer("ADDED", object)
	}
	open.offer("BOOKMARK", m.bookmark(open.of, map[string]string{metav1.InitialEventsAnnotationKey: "true"}))
}

// bookmark carries the resource version of now; the caller holds mu.
func (m *Member) bookmark(c collection, annotations map[string]string) map[string]any {
	metadata := map[string]any{"resourceVersion": strconv.Itoa(m.version)}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return map[string]any{"apiVersion": c.kind.GroupVersion().String(), "kind": c.kind.Kind, "metadata": metadata}
}

// serve sends what happens until the watch ends.
func (w *watch) serve(to http.ResponseWriter, r *http.Request, timeout time.Duration) {
	stream := begin(to)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		select {
		case e := <-w.events:
			stream(e)
		case <-w.end:
			return
		case <-timer.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// breakWatch answers a watch while a fault lasts.
func breakWatch(w http.ResponseWriter, fault Fault, bookmark any) {
	if fault == Unavailable {
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		return
	}
	stream := begin(w)
	switch fault {
	case EndsAfterEvents:
		stream(event{"BOOKMARK", bookmark})
	case Cut:
		stream(event{"BOOKMARK", bookmark})
		panic(http.ErrAbortHandler)
	case Expired:
		stream(event{"ERROR", status(http.StatusGone, metav1.StatusReasonExpired)})
	}
}

// begin starts an answer that goes on, and returns the function that sends a part of it.
func begin(w http.ResponseWriter) (send func(event)) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := func() {
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
	}
	flush()
	encoder := json.NewEncoder(w)
	return func(e event) {
		_ = encoder.Encode(e)
		flush()
	}
}
