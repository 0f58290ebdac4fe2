package placing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

const (
	// hubWrite bounds a write to the hub cluster.
	hubWrite = 10 * time.Second
	// slotPatience is how long a change of the number of replicas waits for pods to get the slots that say which of them go. After
	// it the number counts more than the mix, which is then corrected by moves.
	slotPatience = 30 * time.Second
)

// record writes down what was decided, before anything is done about it: the finalizer, and the status.
func (c *Controller) record(ctx context.Context, it *item, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, hubWrite)
	defer cancel()
	if it.deleting() && (it.handedBack() || !controllerutil.ContainsFinalizer(it.object, v1alpha1.Finalizer)) {
		return c.release(ctx, it)
	}
	if it.stop == nil && !it.deleting() && !controllerutil.ContainsFinalizer(it.object, v1alpha1.Finalizer) {
		before := it.object.DeepCopy()
		controllerutil.AddFinalizer(it.object, v1alpha1.Finalizer)
		if err := c.options.Hub.Patch(ctx, it.object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			if apierrors.IsNotFound(err) {
				return errGone
			}
			return err
		}
	}
	status, before := it.status(now), it.object.Status.Members
	written, err := c.writeStatus(ctx, it, &status)
	if refusesContent(err) {
		c.options.Log.Warn("the hub cluster refuses a status, which is written with less text", "placement", it.name(), "error", err)
		short := status.DeepCopy()
		lean.bound(short)
		written, err = c.writeStatus(ctx, it, short)
	}
	if err != nil || !written {
		return err
	}
	c.wrote(it.object)
	c.announce(it, before)
	return nil
}

// writeStatus gives the object a status, and writes it unless it had that before.
func (c *Controller) writeStatus(ctx context.Context, it *item, status *v1alpha1.FleetPlacementStatus) (written bool, err error) {
	if equality.Semantic.DeepEqual(*status, it.object.Status) {
		return false, nil
	}
	before := it.object.DeepCopy()
	it.object.Status = *status
	if err := c.options.Hub.Status().Patch(ctx, it.object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		it.object.Status = before.Status
		if apierrors.IsNotFound(err) {
			return false, errGone
		}
		return false, err
	}
	return true, nil
}

// refusesContent reports whether an API server refuses what is in an object, which its schema does not allow or which is too large. It
// answers with an internal error where etcd, or its client for etcd, finds it too large; other internal errors are those of the moment.
func refusesContent(err error) bool {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) {
		return false
	}
	switch status := refused.Status(); status.Code {
	case http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return true
	case http.StatusInternalServerError:
		return strings.Contains(status.Message, "request is too large") || strings.Contains(status.Message, "message larger than max")
	}
	return false
}

// release lets a FleetPlacement go. Its members keep what they have.
func (c *Controller) release(ctx context.Context, it *item) error {
	it.sets = nil
	if !controllerutil.ContainsFinalizer(it.object, v1alpha1.Finalizer) {
		return nil
	}
	var left []string
	for _, s := range it.sights {
		if s.set != nil && !s.known {
			left = append(left, fmt.Sprintf("member %s is unreachable: it keeps %d replicas", s.member.Name, s.set.Replicas))
		}
	}
	c.event(it, corev1.EventTypeWarning, eventLeftBehind, "HandBack", left)
	before := it.object.DeepCopy()
	controllerutil.RemoveFinalizer(it.object, v1alpha1.Finalizer)
	return client.IgnoreNotFound(c.options.Hub.Patch(ctx, it.object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// share hands to spot placement what is wanted of each member: what was decided in this round or, where nothing was, what the
// status says.
func (c *Controller) share(items []*item) {
	splits := map[string]map[policy.WorkloadKey]policy.FleetSplit{}
	give := func(member string, it *item, split policy.FleetSplit) {
		if splits[member] == nil {
			splits[member] = map[policy.WorkloadKey]policy.FleetSplit{}
		}
		splits[member][it.target.key] = split
	}
	for _, it := range items {
		switch {
		case (it.stop != nil && !it.stop.keeps) || (it.deleting() && !controllerutil.ContainsFinalizer(it.object, v1alpha1.Finalizer)):
		case it.sets != nil:
			for member, split := range it.sets {
				give(member, it, split)
			}
		default:
			for i := range it.object.Status.Members {
				if split := setOf(&it.object.Status.Members[i]); split != nil {
					give(it.object.Status.Members[i].Name, it, *split)
				}
			}
		}
	}
	c.mu.Lock()
	for member := range c.agents.shared {
		if splits[member] == nil {
			splits[member] = nil
		}
	}
	c.agents.shared = map[string]bool{}
	for member, all := range splits {
		if len(all) > 0 {
			c.agents.shared[member] = true
		}
	}
	c.mu.Unlock()
	for member, all := range splits {
		c.options.Workloads.SetFleetSplits(member, all)
	}
}

// carryOut has the members' agents do what was decided, and ask what is not known. What was ordered before and is not wanted any
// more is not done, even if an agent has it before it.
func (c *Controller) carryOut(ctx context.Context, it *item, now time.Time) {
	uid, orders := string(it.object.UID), map[string]*policy.FleetSplit{}
	for _, s := range it.sights {
		set, ours := it.sets[s.member.Name]
		if it.stop == nil && ours && s.workable() && it.since[s.member.Name].IsZero() && s.out() == "" && s.view.Replicas != set.Replicas && c.slotted(it, s, set, now) {
			orders[s.member.Name] = &set
		}
	}
	due := map[string]bool{} // members that are to be written to, or to be asked whether they may be
	c.mu.Lock()
	if known := c.memory[uid]; known != nil {
		for member, m := range known.members {
			m.order = orders[member]
			due[member] = (m.order != nil || m.refusal.times > 0) && m.refusal.due(now)
		}
	}
	c.mu.Unlock()
	for _, s := range it.sights {
		if it.stop == nil && s.member.Reachable && s.acts && (due[s.member.Name] || s.facts.stale(s.known, now)) {
			c.agents.ask(ctx, s.member.Name, task{uid: uid, target: it.target})
		}
	}
}

// workable reports whether the member can be written to as far as this replica knows.
func (s *sight) workable() bool { return s.member.Reachable && s.acts && s.known }

// slotted reports whether the pods have the slots by which the right ones go, and the right ones come.
func (c *Controller) slotted(it *item, s *sight, set policy.FleetSplit, now time.Time) bool {
	c.mu.Lock()
	m := c.of(string(it.object.UID), s.member.Name)
	if m.set != set || m.setAt.IsZero() {
		m.set, m.setAt = set, now
	}
	decided := m.setAt
	c.mu.Unlock()
	grows := set.Replicas > s.view.Replicas && set.OnDemand <= s.view.OnDemand.Ready+s.view.OnDemand.Starting+s.view.OnDemand.Waiting
	switch {
	case s.view.Ordinals != nil, s.view.Rolling, grows:
		return true
	case s.view.Split != nil && *s.view.Split == set && s.view.Settled:
		return true
	}
	return now.Sub(decided) > slotPatience
}

// stale reports whether a member is to be asked again.
func (f *facts) stale(known bool, now time.Time) bool {
	patience := 15 * time.Second
	switch {
	case f.problem != "" || f.scaler != "":
	case known && !f.exists: // it has come since
		patience = time.Second
	case known:
		patience = 5 * time.Minute
	}
	return now.Sub(f.asked) > patience
}
