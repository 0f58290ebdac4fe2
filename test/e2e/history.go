package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// A Tenure is a time in which a replica may act: from its taking the Lease to the end of what it has renewed without a break.
type Tenure struct {
	Replica     string
	From, Until time.Time
}

// tenures are all that there were, in their order. They may be read while they are written.
type tenures struct {
	mu     sync.Mutex
	all    []Tenure
	holder string // the identity in the Lease as last seen
}

// saw notes a state of the Lease.
func (t *tenures) saw(lease *coordinationv1.Lease) {
	spec := lease.Spec
	if spec.HolderIdentity == nil || spec.RenewTime == nil || spec.AcquireTime == nil || spec.LeaseDurationSeconds == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	identity, renewed := *spec.HolderIdentity, spec.RenewTime.Time
	until := renewed.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)
	var last *Tenure
	if len(t.all) > 0 {
		last = &t.all[len(t.all)-1]
	}
	switch same := identity == t.holder; {
	case same && last != nil && !renewed.After(last.Until):
		last.Until = until
	case same && identity != "":
		// It has renewed what had run out.
		t.all = append(t.all, Tenure{Replica: holder(lease), From: renewed, Until: until})
	case !same:
		// Given up, or taken by another one: from then on the last one may not act, whatever it had renewed.
		if last != nil && spec.AcquireTime.Time.Before(last.Until) {
			last.Until = spec.AcquireTime.Time
		}
		if identity != "" {
			t.all = append(t.all, Tenure{Replica: holder(lease), From: spec.AcquireTime.Time, Until: until})
		}
	}
	t.holder = identity
}

func (t *tenures) list() []Tenure {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.all)
}

// A podHistory is what became of the pods and of the budget of a member's workload, in the order of its API server, as far as
// its watches could see: they have gaps where the API server was restarted. It may be read while it is written.
type podHistory struct {
	capacityOf func(*corev1.Pod) string

	mu         sync.Mutex
	pods       map[string]*podRecord // by name; those that have gone as well
	departures []departure
	budget     *policyv1.PodDisruptionBudget // as last seen; nil at first and after a gap
	disrupted  map[string]bool               // pods that the budget has counted
	overdrawn  []string                      // pods that it has counted when it had nothing left
	gaps       []gap
}

type podRecord struct {
	uid      types.UID
	capacity string
	alive    bool
	ready    time.Time // since when, as far as seen; zero: it never was
	unready  bool      // it was ready, and then was not
}

// A departure is an on-demand pod that was alive, and then was not any more.
type departure struct {
	at     time.Time
	pod    string
	before int // on-demand pods that were alive until then
}

// A gap is a time of which a watch knows nothing.
type gap struct{ from, to time.Time }

func newPodHistory(capacityOf func(*corev1.Pod) string) *podHistory {
	return &podHistory{capacityOf: capacityOf, pods: map[string]*podRecord{}, disrupted: map[string]bool{}}
}

// listed begins again with the pods that there are.
func (h *podHistory) listed(pods []corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, known := range h.pods {
		known.alive = false
	}
	for i := range pods {
		h.saw(&pods[i], false, time.Now())
	}
}

// changed notes an event of the watch.
func (h *podHistory) changed(pod *corev1.Pod, deleted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.saw(pod, deleted, time.Now())
}

func (h *podHistory) saw(pod *corev1.Pod, deleted bool, now time.Time) {
	before := h.onDemand()
	known := h.pods[pod.Name]
	if known == nil {
		known = &podRecord{}
		h.pods[pod.Name] = known
	}
	known.uid = pod.UID
	was := known.alive
	known.alive = !deleted && pod.DeletionTimestamp == nil && !fleet.Finished(pod)
	if was && !known.alive && known.capacity == kube.OnDemand {
		h.departures = append(h.departures, departure{at: now, pod: pod.Name, before: before})
	}
	if capacity := h.capacityOf(pod); capacity != "" {
		known.capacity = capacity
	}
	switch ready := fleet.Ready(pod); {
	case ready && known.ready.IsZero():
		known.ready = now
	case !ready && !known.ready.IsZero():
		known.unready = true
	}
}

func (h *podHistory) onDemand() (n int) {
	for _, known := range h.pods {
		if known.alive && known.capacity == kube.OnDemand {
			n++
		}
	}
	return n
}

// budgeted notes a state of the budget; first says that states before it may not have been seen.
func (h *podHistory) budgeted(budget *policyv1.PodDisruptionBudget, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range budget.Status.DisruptedPods {
		if first || h.budget == nil {
			h.disrupted[name] = true
			continue
		}
		if _, counted := h.budget.Status.DisruptedPods[name]; counted {
			continue
		}
		h.disrupted[name] = true
		if h.budget.Status.DisruptionsAllowed <= 0 {
			h.overdrawn = append(h.overdrawn, name)
		}
	}
	h.budget = budget
}

func (h *podHistory) missed(from, to time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gaps = append(h.gaps, gap{from: from, to: to})
}

// A recorder follows what the history is made of until it is stopped.
type recorder struct {
	tenures *tenures
	pods    map[string]*podHistory // by member

	stop context.CancelFunc
	done sync.WaitGroup
}

// record starts to follow the Lease in the hub cluster, and pods and budget of web in every member.
func record(hubCluster *Cluster, members []*Cluster) *recorder {
	ctx, stop := context.WithCancel(context.Background())
	r := &recorder{tenures: &tenures{}, pods: map[string]*podHistory{}, stop: stop}
	r.done.Go(func() {
		follow(ctx, hubCluster, &coordinationv1.LeaseList{}, client.InNamespace(fleet.Namespace), follower[*coordinationv1.Lease]{
			listed: func(leases []*coordinationv1.Lease) {
				for _, lease := range leases {
					r.tenures.saw(lease)
				}
			},
			changed: func(lease *coordinationv1.Lease, _ bool) { r.tenures.saw(lease) },
			missed:  func(time.Time, time.Time) {}, // what was renewed meanwhile shows as a write without a Lease
		})
	})
	for _, m := range members {
		history := newPodHistory(m.capacityOf)
		r.pods[m.Name] = history
		r.done.Go(func() {
			follow(ctx, m, &corev1.PodList{}, client.MatchingLabels{fleet.AppLabel: web}, follower[*corev1.Pod]{
				listed: func(pods []*corev1.Pod) {
					all := make([]corev1.Pod, 0, len(pods))
					for _, pod := range pods {
						all = append(all, *pod)
					}
					history.listed(all)
				},
				changed: history.changed, missed: history.missed,
			})
		})
		r.done.Go(func() {
			follow(ctx, m, &policyv1.PodDisruptionBudgetList{}, client.InNamespace(shop), follower[*policyv1.PodDisruptionBudget]{
				listed: func(budgets []*policyv1.PodDisruptionBudget) {
					for _, budget := range budgets {
						history.budgeted(budget, true)
					}
				},
				changed: func(budget *policyv1.PodDisruptionBudget, _ bool) { history.budgeted(budget, false) },
				missed:  history.missed,
			})
		})
	}
	return r
}

func (r *recorder) close() {
	r.stop()
	r.done.Wait()
}

// A follower is notified of objects: of all that there are at first and after each gap, and of each change in between.
type follower[T client.Object] struct {
	listed  func([]T)
	changed func(object T, deleted bool)
	missed  func(from, to time.Time)
}

// lookAgain is how long a follower waits before it asks again an API server that did not answer.
const lookAgain = 50 * time.Millisecond

// listTimeout bounds a list, so that one that was sent to a server which has gone is asked again.
const listTimeout = 5 * time.Second

// follow lists and watches until ctx ends.
func follow[T client.Object](ctx context.Context, c *Cluster, list client.ObjectList, where client.ListOption, tell follower[T]) {
	var lost time.Time
	for ctx.Err() == nil {
		events, err := begin(ctx, c, list, where, tell.listed)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(lookAgain):
			}
			continue
		}
		if !lost.IsZero() {
			tell.missed(lost, time.Now())
		}
		lost = time.Now()
		for event := range events.ResultChan() {
			object, is := event.Object.(T)
			if !is {
				break // an error: the watch cannot go on
			}
			lost = time.Now()
			tell.changed(object, event.Type == watch.Deleted)
		}
		events.Stop()
	}
}

// begin lists, and starts to watch from there.
func begin[T client.Object](ctx context.Context, c *Cluster, list client.ObjectList, where client.ListOption, listed func([]T)) (watch.Interface, error) {
	asking, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	if err := c.List(asking, list, where); err != nil {
		return nil, err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	all := make([]T, 0, len(objects))
	for _, object := range objects {
		one, is := object.DeepCopyObject().(T)
		if !is {
			return nil, fmt.Errorf("a list of %T", object)
		}
		all = append(all, one)
	}
	listed(all)
	return c.Watch(ctx, list, where, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
}
