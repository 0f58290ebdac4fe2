package spot

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

const (
	// liveListInterval is the least time between two searches for pods without a slot, while what the owner's status and the
	// cache say has not changed. It doubles with each search that finds the same pods, up to liveListMaxInterval: where nothing
	// may be written, or the API server refuses it, such pods stay for as long as that lasts.
	liveListInterval    = 30 * time.Second
	liveListMaxInterval = 30 * time.Minute
	// liveListPatience is how long the sign of such pods must stand before they are searched: right after a pod has gone,
	// the cache of pods is ahead of the owner's status.
	liveListPatience = time.Second
	// maxFound bounds how many of the pods that a search found are remembered for the plans until the next one: as many as have
	// slots.
	maxFound = policy.MaxSlot
)

// liveListMark remembers since when an owner has shown the sign of pods without a slot, what the sign was, when they were last
// searched, and which were found.
type liveListMark struct {
	status, visible int
	since, at       time.Time
	interval        time.Duration // from at to the next search
	found           []foundPod    // nil: they were not searched yet
}

// foundPod is a pod without a slot, and its node.
type foundPod struct {
	plan.Pod
	node string
}

// same tells whether a pod is as it was found before, as far as plans depend on it.
func (f *foundPod) same(other *foundPod) bool {
	return f.UID == other.UID && f.Ready == other.Ready && f.node == other.node && f.UnschedulableSince.Equal(other.UnschedulableSince)
}

// unlabelled finds the pods of an owner that hold no slot: they existed before the workload was enabled, or slipped past
// the webhook. They are not in the cache; that an owner counts more replicas than the cache shows is the only sign of them.
// One live list finds them, once the sign has stood for a moment, and is repeated only when the sign changes, or after a
// while; in between the plans go by what was found. recheck is when to look again.
func (e *Engine) unlabelled(ctx context.Context, dir *directory, of *subject, s source, visible int, now time.Time) (pods []plan.Pod, recheck time.Time, err error) {
	live, namespace := of.live, of.key.Namespace
	o := dir.ensureOwner(s.UID, s.kind)
	search, recheck := o.wantsList(s.status, visible+len(s.Accounting.Reserved), now)
	if !search {
		return e.remembered(dir, o), recheck, nil
	}
	selector, err := withoutSlot(e.Keys, s.selector)
	if err != nil {
		return nil, recheck, fmt.Errorf("selector of %s %s/%s: %w", s.kind, namespace, s.Name, err)
	}
	found := []foundPod{}
	err = ownedPods(ctx, live, s.UID, namespace, selector, func(pod *corev1.Pod) (more bool) {
		if facts := e.podFacts(dir, pod); facts.Alive() {
			found = append(found, foundPod{Pod: facts, node: pod.Spec.NodeName})
		}
		return len(found) < maxFound
	}, func() { found = found[:0] })
	if err != nil {
		return nil, recheck, fmt.Errorf("list the pods without slot of %s %s/%s: %w", s.kind, namespace, s.Name, err)
	}
	e.noteUndecided(dir, of, o.firstFound(found), now)
	recheck = o.keepFound(found, now)
	return e.remembered(dir, o), recheck, nil
}

// wantsList tells whether pods without a slot should be searched for now, and notes that they are; if the sign of them is
// too fresh, or they were searched lately, it tells when to look again.
func (o *owner) wantsList(status, visible int, now time.Time) (search bool, recheck time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if status <= visible {
		o.listed = liveListMark{}
		return false, time.Time{}
	}
	if o.listed.since.IsZero() || o.listed.status != status || o.listed.visible != visible {
		o.listed = liveListMark{status: status, visible: visible, since: now, interval: liveListInterval}
	}
	if stands := o.listed.since.Add(liveListPatience); now.Before(stands) {
		return false, stands
	}
	if next := o.listed.at.Add(o.listed.interval); now.Before(next) {
		return false, next
	}
	o.listed.at = now
	return true, now.Add(o.listed.interval)
}

// keepFound remembers what a search found, and returns when to search again.
func (o *owner) keepFound(found []foundPod, now time.Time) time.Time {
	slices.SortFunc(found, func(a, b foundPod) int { return plan.ByAge(&a.Pod, &b.Pod) })
	o.mu.Lock()
	defer o.mu.Unlock()
	again := slices.EqualFunc(found, o.listed.found, func(a, b foundPod) bool { return a.same(&b) })
	if o.listed.found != nil && again {
		o.listed.interval = min(2*o.listed.interval, liveListMaxInterval)
	} else {
		o.listed.interval = liveListInterval
	}
	o.listed.found = found
	return now.Add(o.listed.interval)
}

// searchAgain drops what was found: it is not true any more.
func (o *owner) searchAgain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listed.at, o.listed.found = time.Time{}, nil
}

// remembered returns what the last search found, with what is known of the nodes now.
func (e *Engine) remembered(dir *directory, o *owner) []plan.Pod {
	o.mu.Lock()
	found := o.listed.found // replaced, never changed
	o.mu.Unlock()
	if len(found) == 0 {
		return nil
	}
	pods := make([]plan.Pod, len(found))
	for i := range found {
		pods[i] = found[i].Pod
		pods[i].Doom = dir.nodes.doomOf(found[i].node)
		if labels, known := dir.nodes.labelsOf(found[i].node); known {
			pods[i].Capacity = e.Capacity.OfNode(labels)
		}
	}
	return pods
}

// addUnlabelled adds the pods of the subject's owners that hold no slot, and tells when to look for them again.
func (e *Engine) addUnlabelled(ctx context.Context, dir *directory, s *subject, o *plan.Observed, now time.Time) (recheck time.Time, err error) {
	visible := map[types.UID]int{}
	for i := range o.Pods {
		if pod := &o.Pods[i]; pod.Released == nil && s.counts(pod) {
			visible[pod.Owner]++
		}
	}
	for i, src := range s.sources {
		src.Accounting = o.Owners[i].Accounting
		more, again, err := e.unlabelled(ctx, dir, s, src, visible[src.UID], now)
		if err != nil {
			return recheck, err
		}
		recheck = when.Earlier(recheck, again)
		o.Pods = append(o.Pods, withoutKnown(more, o.Pods)...)
	}
	return recheck, nil
}

// counts tells whether the controller of the subject's pods counts a pod in its status. That of a StatefulSet counts whatever
// exists, also what is being deleted; that of a ReplicaSet what is active, and other kinds are taken to do the same.
func (s *subject) counts(pod *plan.Pod) bool {
	return s.ordinals || (pod.GoneBy.IsZero() && !pod.Finished)
}

// withoutKnown leaves out the pods that the cache shows: they got their slots since they were found.
func withoutKnown(found, cached []plan.Pod) []plan.Pod {
	if len(found) == 0 {
		return nil
	}
	known := make(map[types.UID]struct{}, len(cached))
	for i := range cached {
		known[cached[i].UID] = struct{}{}
	}
	return slices.DeleteFunc(found, func(p plan.Pod) bool { _, is := known[p.UID]; return is })
}

func withoutSlot(keys policy.Keys, selector *metav1.LabelSelector) (labels.Selector, error) {
	base, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	none, err := labels.NewRequirement(keys.Slot(), selection.DoesNotExist, nil)
	if err != nil {
		return nil, err
	}
	return base.Add(*none), nil
}
