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

// maxFound bounds how many of the pods that searches found are remembered for the plans until the next ones, over all owners of a member:
// as many as have slots. Each owner has leastFound of its own, so that it goes on whatever others have.
const maxFound, leastFound = policy.MaxSlot, 100

// unlabelled finds the pods of an owner that hold no slot: they existed before the workload was enabled, or slipped past
// the webhook. They are not in the cache; that an owner counts more replicas than the cache shows is the only sign of them.
// One live list finds them, once the sign has stood for a moment, and is repeated only when the sign changes, or after a
// while; in between the plans go by what was found. recheck is when to look again.
func (e *Engine) unlabelled(ctx context.Context, dir *directory, of *subject, s source, visible int, now time.Time) (pods []plan.Pod, recheck time.Time, err error) {
	live, namespace := of.live, of.key.Namespace
	o := dir.ensureOwner(ownerKey{namespace, s.UID}, s.kind)
	search, recheck := o.wantsSearch(s.status, visible+len(s.Accounting.Reserved), now)
	if !search {
		return e.remembered(dir, o), recheck, nil
	}
	selector, err := withoutSlot(e.options.Keys, s.selector)
	if err != nil {
		return nil, recheck, fmt.Errorf("selector of %s %s/%s: %w", s.kind, namespace, s.Name, err)
	}
	found, room := []plan.Pod{}, dir.roomForFound(o)
	err = ownedPods(ctx, live, s.UID, namespace, selector, func(pod *corev1.Pod) (more bool) {
		if facts := e.podFacts(dir, pod); facts.Alive() {
			found = append(found, facts)
		}
		return len(found) < room
	}, func() { found = found[:0] })
	if err != nil {
		return nil, recheck, fmt.Errorf("list the pods without slot of %s %s/%s: %w", s.kind, namespace, s.Name, err)
	}
	e.noteUndecided(dir, of, o.firstFound(found), now)
	recheck = o.keepFound(found, now)
	return e.remembered(dir, o), recheck, nil
}

// roomForFound is how many pods may be remembered that a search for an owner finds.
func (d *directory) roomForFound(of *owner) int {
	room := maxFound
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, o := range d.owners {
		if o != of {
			o.mu.Lock()
			room -= len(o.search.Found())
			o.mu.Unlock()
		}
	}
	return max(room, leastFound)
}

// wantsSearch is [plan.Search.Wanted] under the lock.
func (o *owner) wantsSearch(status, visible int, now time.Time) (search bool, recheck time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.search.Wanted(status, visible, now)
}

// keepFound is [plan.Search.Keep] under the lock.
func (o *owner) keepFound(found []plan.Pod, now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.search.Keep(found, now)
}

// searchAgain is [plan.Search.Repeat] under the lock.
func (o *owner) searchAgain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.search.Repeat()
}

// remembered returns what the last search found, with what is known about the nodes now.
func (e *Engine) remembered(dir *directory, o *owner) []plan.Pod {
	o.mu.Lock()
	pods := slices.Clone(o.search.Found())
	o.mu.Unlock()
	for i := range pods {
		pods[i].Interruption = dir.nodes.InterruptionOf(pods[i].Node)
		if labels, known := dir.nodes.LabelsOf(pods[i].Node); known {
			pods[i].Capacity = e.options.Capacity.OfNode(labels)
		}
	}
	return pods
}

// addUnlabelled adds the pods of the subject's owners that hold no slot, and returns when to look for them again.
func (e *Engine) addUnlabelled(ctx context.Context, dir *directory, s *subject, o *plan.Observed, now time.Time) (recheck time.Time, err error) {
	visible := map[types.UID]int{}
	for i := range o.Pods {
		if pod := &o.Pods[i]; pod.Released == nil && pod.Counted(s.ordinals) {
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
		o.Pods = append(o.Pods, plan.WithoutKnown(more, o.Pods)...)
	}
	return recheck, nil
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
