package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// stuckGrace is how long after its deadline a reconcile has to return before it counts as stuck.
	stuckGrace = 10 * time.Second
	// stuckReminder is the time between two log lines about one stuck reconcile.
	stuckReminder = 5 * time.Minute
)

// A stuckWatch logs one reconcile that does not return though its deadline has passed. Nothing can end such a reconcile: it
// keeps one worker, and its key does not run again before it returns, so that it never costs more than that. The metric is
// read off the running keys when it is asked for.
type stuckWatch struct {
	e     *engagement
	key   types.NamespacedName
	began time.Time

	mu    sync.Mutex
	timer *time.Timer
	ended bool
}

func (e *engagement) watchStuck(key types.NamespacedName, after time.Duration) *stuckWatch {
	w := &stuckWatch{e: e, key: key, began: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(after, w.report)
	return w
}

// report logs, and sets the timer for the next line.
func (w *stuckWatch) report() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.e.log.Error("reconcile is stuck: it has not returned, and its deadline has passed",
		"namespace", w.key.Namespace, "name", w.key.Name, "age", time.Since(w.began).Round(time.Second).String())
	w.timer.Reset(stuckReminder)
}

// end is called when the reconcile has returned.
func (w *stuckWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.timer.Stop()
}

// stuck counts the runs of a queue in a flow's member that are past their deadline and the grace. Runtime.mu is held.
func (q *queue) stuck(l *flow, now int64) (n int) {
	if q.overdue <= 0 {
		return 0
	}
	for _, run := range q.running {
		if run.flow.member == l.member && now-run.record.started > int64(q.overdue) {
			n++
		}
	}
	return n
}
