package spot

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// freshObject is how old an object may be when it is first seen and still be treated as one that was enabled from the start.
const freshObject = 10 * time.Second

// enabledFrom is since when a workload that is seen for the first time gets decisions, if it is enabled; zero: since it is seen
// to be. One that was there before may have been enabled at any time.
func enabledFrom(created, seen time.Time) time.Time {
	if created.IsZero() || seen.Sub(created) > freshObject {
		return time.Time{}
	}
	return created
}

// noteUndecided counts the pods among those that were found without a slot that were created after their workload was known to
// be enabled: they came without a decision.
func (e *Engine) noteUndecided(dir *directory, of *subject, found []plan.Pod, now time.Time) {
	since, pol := dir.enabledSince(of.key)
	if pol == nil || e.settingsFor(of.member, pol).ReadOnly { // the webhook decides nothing for those
		return
	}
	n := undecided(found, since)
	if n == 0 {
		return
	}
	e.metrics.CountUndecided(of.member, n)
	if m := e.member(of.member); m != nil {
		m.undecidedAt.Store(now.UnixNano())
	}
	e.options.Log.Warn("pods were created without a decision of the webhook and are placed now", "member", of.member,
		"namespace", of.key.Namespace, "kind", of.key.Kind, "name", of.key.Name, "pods", n)
}

// undecided counts the pods that were created since a time. Creation times are whole seconds: a pod of the second in which the
// workload was enabled may be from before.
func undecided(found []plan.Pod, since time.Time) (n int) {
	if whole := since.Truncate(time.Second); !whole.Equal(since) {
		since = whole.Add(time.Second)
	}
	for i := range found {
		if !found[i].Created.Before(since) {
			n++
		}
	}
	return n
}

// firstFound is [plan.Search.FirstFound] under the lock.
func (o *owner) firstFound(found []plan.Pod) []plan.Pod {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.search.FirstFound(found)
}

// enabledSince returns since when a workload is known to be enabled, and its policy; nil: it is not.
func (d *directory) enabledSince(key policy.WorkloadKey) (time.Time, *policy.Policy) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	w := d.workloads[key]
	if w == nil {
		return time.Time{}, nil
	}
	return w.enabledAt, w.policy
}

// UndecidedAt reports when pods of a member were last found that had come without a decision of the webhook; zero: none were.
func (e *Engine) UndecidedAt(member string) time.Time {
	m := e.member(member)
	if m == nil || m.undecidedAt.Load() == 0 {
		return time.Time{}
	}
	return time.Unix(0, m.undecidedAt.Load())
}

// CheckNamespace is where the hub may create pods in a member: that of probes.
func (e *Engine) CheckNamespace(member string) string {
	if m := e.member(member); m != nil {
		return m.probeNamespace()
	}
	return e.options.Probes.Namespace
}
