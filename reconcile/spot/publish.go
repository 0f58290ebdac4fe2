package spot

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// publish reports to the API, the metrics and, when the state has changed, the member's Events what the plan said.
func (e *Engine) publish(dir *directory, s *subject, p *report.Planned) {
	before, known := dir.view(s.key)
	view := report.Of(s.member, s.key, p)
	dir.setView(view)
	if !known || !before.SamePlacement(&view) {
		e.notify(s.member, s.key)
	}
	dir.journal.RecordPlan(s.key, *p)
	e.metrics.ShowWorkload(&view)
	if !known && s.meta.CreationTimestamp.After(dir.since) {
		before, known = report.Workload{}, true // it is new, and not only new to this process
	}
	for _, a := range report.Announcements(&before, known, &view) {
		if a.Warning {
			s.events.Warning(a.Reason, "%s", a.Message)
		} else {
			s.events.Normal(a.Reason, "%s", a.Message)
		}
	}
}

// Notify has changed called whenever [report.Workload.SamePlacement] is false for what was published of a workload, and for what is
// published of it first.
func (e *Engine) Notify(changed func(member, kind, namespace, name string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notified = append(e.notified, changed)
}

func (e *Engine) notify(member string, key policy.WorkloadKey) {
	e.mu.RLock()
	notified := e.notified
	e.mu.RUnlock()
	for _, changed := range notified {
		changed(member, key.Kind, key.Namespace, key.Name)
	}
}

// forget takes back what was published of a workload that is gone, or not enabled any more.
func (e *Engine) forget(member string, key policy.WorkloadKey) {
	e.metrics.ForgetWorkload(member, key)
	e.moves.Forget(plan.MoveKey{Member: member, WorkloadKey: key})
	if dir := e.directory(member); dir != nil {
		dir.dropView(key)
		dir.journal.Forget(key)
		dir.memos.forget(key)
		dir.droughts.Note(key, false)
		dir.waits.note(key, nil)
	}
}

// noteMove remembers that a pod of an owner was moved. Nobody can ask about workloads that are not known, or are gone.
func (d *directory) noteMove(o *owner, m report.Move) {
	if o == nil {
		return
	}
	d.mu.RLock()
	defer d.mu.RUnlock() // not before it is noted: what is known about a workload is forgotten under the lock
	if o.kind != "" && d.workloads[o.workload] != nil {
		d.journal.RecordMove(o.workload, m)
		if d.onMove != nil {
			d.onMove(o.workload, m)
		}
	}
}

// Suppose answers what the plan of a workload would be under a hypothesis, from what its last plan was made of. It changes
// nothing. It is false when the workload is not known, or not planned yet.
func (e *Engine) Suppose(member, kind, namespace, name string, h report.Hypothesis, now time.Time) (report.WhatIf, bool) {
	dir := e.directory(member)
	if dir == nil {
		return report.WhatIf{}, false
	}
	key := policy.WorkloadKey{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	view, shown := dir.view(key)
	last, known := dir.journal.LastPlan(key)
	if !shown || !known {
		return report.WhatIf{}, false
	}
	return report.Suppose(&view, last, h, e.options.Keys, now), true
}
