package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A link is the way of one replica to one API server.
type link struct{ replica, cluster string }

// A disturbance is what is wrong with a link. Several may be wrong at once.
type disturbance struct {
	// NoRequests: requests do not arrive.
	NoRequests bool
	// NoAnswers: requests arrive, and answers do not; watches that are open say nothing.
	NoAnswers bool
	// Stale: watches say nothing, and everything else is answered.
	Stale bool
	// Slow is how much later answers come, those of watches apart.
	Slow time.Duration
}

// links are the faults of the proxies' own, which lie between each replica and each API server. They may be changed at any time,
// for requests that are under way as well.
type links struct {
	mu      sync.Mutex
	wrong   map[link]disturbance
	changed chan struct{} // closed and replaced by each change
}

func newLinks() *links { return &links{wrong: map[link]disturbance{}, changed: make(chan struct{})} }

// set disturbs a link; the zero disturbance heals it.
func (l *links) set(which link, wrong disturbance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong[which] = wrong
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *links) now(which link) (disturbance, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrong[which], l.changed
}

// await returns when the link has not got this fault, or an error when nobody waits any more.
func (l *links) await(ctx context.Context, which link, has func(disturbance) bool) error {
	for {
		wrong, changed := l.now(which)
		if !has(wrong) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A recorder is notified of requests before they are passed on. What it returns, if anything, is called with the API server's
// status code.
type recorder func(process string, r *http.Request) (answered func(status int))

// intercept is how the proxy of a cluster treats requests: it notes in their user agent which process sent them, for the audit
// log, and does to them what the link's disturbance says.
func (l *links) intercept(cluster string, record recorder) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			process := processOf(r.Context())
			if process == "" {
				panic(http.ErrAbortHandler) // sent by a process that has ended
			}
			which := link{replica: replicaOf(process), cluster: cluster}
			if l.await(r.Context(), which, func(d disturbance) bool { return d.NoRequests }) != nil {
				panic(http.ErrAbortHandler)
			}
			r.Header.Set("User-Agent", process+" "+r.UserAgent())
			writer := &linkWriter{ResponseWriter: w, ctx: r.Context(), links: l, link: which, watch: isWatch(r)}
			writer.answered = record(process, r)
			next.ServeHTTP(writer, r)
		})
	}
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// A linkWriter passes an answer on when the link allows it.
type linkWriter struct {
	http.ResponseWriter
	ctx      context.Context
	links    *links
	link     link
	watch    bool
	answered func(status int)
}

// Unwrap lets the reverse proxy flush.
func (w *linkWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader waits; when nobody waits for the answer any more, it ends the request.
func (w *linkWriter) WriteHeader(status int) {
	if w.answered != nil {
		w.answered(status)
	}
	if w.delay() != nil || w.pass() != nil {
		panic(http.ErrAbortHandler)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *linkWriter) Write(content []byte) (int, error) {
	if err := w.pass(); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(content)
}

func (w *linkWriter) pass() error {
	return w.links.await(w.ctx, w.link, func(d disturbance) bool { return d.NoAnswers || d.Stale && w.watch })
}

func (w *linkWriter) delay() error {
	wrong, _ := w.links.now(w.link)
	if wrong.Slow == 0 || w.watch {
		return nil
	}
	select {
	case <-time.After(wrong.Slow):
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

// Processes are named by their replica and a number: r2.3 is the third process of replica r2.

func processName(replica string, number int) string { return fmt.Sprintf("%s.%d", replica, number) }

func replicaOf(process string) string {
	replica, _, _ := strings.Cut(process, ".")
	return replica
}
