package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// A Moment is the state of a workload's pods after one event of the API server's watch.
type Moment struct {
	// At is when we were notified.
	At time.Time
	// Pod that changed.
	Pod string
	// Left says that with this event the pod stopped being alive: it was deleted, or its deletion has begun.
	Left bool
	// Capacity type and node that the pod had before, if it left, and whether it was ready then.
	Capacity, Node string
	WasReady       bool
	// Unplaced is how many pods that are alive were let in without a slot.
	Unplaced int
	// Slipped is how many pods that are alive came without a slot, whatever they have now: the hub was not asked about them,
	// or let them through.
	Slipped int
	// Mix after the event, and how many replicas were on-demand before it.
	Mix            Mix
	OnDemandBefore int
	// ReadyOnDemand is how many of the on-demand replicas are ready after the event.
	ReadyOnDemand int
}

// A History follows the pods of one workload by a watch of its own at the real API server, and so knows every state that
// they have gone through, in the API server's order. Where the API server ends the watch, as it does to those that it is too
// busy to serve, the next one begins with the event after the last; only where the API server does not have that any more,
// the history has a hole, and says so.
type History struct {
	workload *Workload
	cancel   context.CancelFunc
	done     chan struct{}

	mu      sync.Mutex
	pods    map[types.UID]podState
	moments []Moment
	err     error
}

type podState struct {
	pod      *corev1.Pod
	capacity string
	slipped  bool // it came without a slot
}

// Follow starts to remember. Stop the history when it is no longer needed.
func (w *Workload) Follow(ctx context.Context) (*History, error) {
	watcher, err := client.NewWithWatch(w.Member.Cluster.Config(), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("follow the pods of %s: %w", w, err)
	}
	var list corev1.PodList
	where := []client.ListOption{client.InNamespace(w.Namespace), client.MatchingLabels{AppLabel: w.Name}}
	if err := watcher.List(ctx, &list, where...); err != nil {
		return nil, fmt.Errorf("follow the pods of %s: %w", w, err)
	}
	h := &History{workload: w, done: make(chan struct{}), pods: map[types.UID]podState{}}
	for i := range list.Items {
		h.take(ctx, watch.Event{Type: watch.Added, Object: &list.Items[i]})
	}
	h.moments = nil // a list shows one state, not a way to it
	ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, podWatch{watcher, where})
	if err != nil {
		h.cancel()
		return nil, fmt.Errorf("follow the pods of %s: %w", w, err)
	}
	go h.run(ctx, events)
	return h, nil
}

// podWatch starts watches of pods.
type podWatch struct {
	client client.WithWatch
	where  []client.ListOption
}

// WatchWithContext implements cache.WatcherWithContext.
func (w podWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return w.client.Watch(ctx, &corev1.PodList{}, append(slices.Clone(w.where), &client.ListOptions{Raw: &options})...)
}

func (h *History) run(ctx context.Context, events watch.Interface) {
	defer close(h.done)
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-events.ResultChan():
			if !open {
				h.fail(ctx, fmt.Errorf("the watch of %s has ended: its history has a hole", h.workload))
				return
			}
			h.take(ctx, event)
		}
	}
}

func (h *History) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
	}
}

// take notes one event.
func (h *History) take(ctx context.Context, event watch.Event) {
	at := time.Now()
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		h.fail(ctx, fmt.Errorf("the watch of %s said %s: its history has a hole", h.workload, event.Type))
		return
	}
	capacity, err := h.workload.Member.CapacityOf(ctx, pod)
	if err != nil {
		h.fail(ctx, err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.mix()
	moment := Moment{At: at, Pod: pod.Name, OnDemandBefore: before.OnDemand}
	old, known := h.pods[pod.UID]
	if event.Type == watch.Deleted {
		delete(h.pods, pod.UID)
	} else {
		slipped := old.slipped
		if !known {
			slipped = !placed(pod)
		}
		h.pods[pod.UID] = podState{pod: pod, capacity: capacity, slipped: slipped}
	}
	if known && alive(old.pod) && (event.Type == watch.Deleted || !alive(pod)) {
		moment.Left, moment.Capacity, moment.Node, moment.WasReady = true, old.capacity, old.pod.Spec.NodeName, Ready(old.pod)
	}
	moment.Mix = h.mix()
	moment.Unplaced = h.count(func(state *podState) bool { return !placed(state.pod) })
	moment.Slipped = h.count(func(state *podState) bool { return state.slipped })
	moment.ReadyOnDemand = h.count(func(state *podState) bool { return state.capacity == kube.OnDemand && Ready(state.pod) })
	h.moments = append(h.moments, moment)
}

func alive(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !Finished(pod) }

// mix counts the pods as they are now. The caller holds mu.
func (h *History) mix() Mix {
	var mix Mix
	for _, state := range h.pods {
		mix.add(state.pod, state.capacity)
	}
	return mix
}

// placed reports whether a pod has a slot.
func placed(pod *corev1.Pod) bool {
	_, has := pod.Labels[Keys.Slot()]
	return has
}

// count counts the pods that are alive and have something. The caller holds mu.
func (h *History) count(has func(*podState) bool) int {
	n := 0
	for _, state := range h.pods {
		if alive(state.pod) && has(&state) {
			n++
		}
	}
	return n
}

// Now counts the pods after the last event.
func (h *History) Now() Mix {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mix()
}

// Moments is all that has happened so far; an error says that it is not all.
func (h *History) Moments() ([]Moment, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Moment(nil), h.moments...), h.err
}

// hole is why not all that has happened is known; nil: it is.
func (h *History) hole() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// AwaitMix waits until the history has come to this mix. It fails at once when the history has a hole.
func (h *History) AwaitMix(ctx context.Context, mix Mix) error {
	var hole error
	err := Await(ctx, fmt.Sprintf("%s of %s", mix, h.workload), func(context.Context) (bool, error) {
		if hole = h.hole(); hole != nil {
			return true, nil
		}
		if now := h.Now(); now != mix {
			return false, fmt.Errorf("there are %s", now)
		}
		return true, nil
	})
	return errors.Join(err, hole)
}

// Stop ends the watch.
func (h *History) Stop() {
	h.cancel()
	<-h.done
}
