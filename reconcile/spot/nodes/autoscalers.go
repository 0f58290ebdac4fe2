package nodes

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/paging"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

// How signs of coming nodes are read: live, only while a pod is about to have waited for too long, once for all that ask.
const (
	signTTL     = 5 * time.Second  // how long what was read is fresh
	signStale   = 30 * time.Second // how long it counts while it cannot be read again
	signRefused = 5 * time.Minute  // how long what may not be read, or does not exist, is left alone
	signTimeout = 2 * time.Second  // for one reading, of all its pages
	signPages   = 10               // of one reading, with up to 500 objects each
)

// Reasons of Events on pods.
const (
	eventScaledUp    = "TriggeredScaleUp"  // Cluster Autoscaler and GKE: a node group grows for the pod
	eventNotScaledUp = "NotTriggerScaleUp" // and: none would help, or all are in back-off
	eventNominated   = "Nominated"         // Karpenter: the pod goes to this NodeClaim, or node
)

// Autoscalers reads from a member's API server what autoscalers say about nodes that are on their way. Nothing of it is watched:
// it matters for moments, and Events and NodeClaims of all would be many. It is safe for concurrent use.
type Autoscalers struct {
	live    func() client.Reader
	flights singleflight.Group

	mu    sync.Mutex
	known map[string]signsRead // by what was read
}

// signsRead is what one reading found.
type signsRead struct {
	asked   time.Time // when it was last tried
	at      time.Time // when that worked
	refused bool      // it may not be read, or does not exist in this member
	problem string    // why it may not; empty: there is no such thing
	claims  []nodeClaim
	events  map[types.UID]time.Time // of pods: the newest
}

// NewAutoscalers returns what reads from a member's API server by live, which is called for every reading.
func NewAutoscalers(live func() client.Reader) *Autoscalers {
	return &Autoscalers{live: live, known: map[string]signsRead{}}
}

// Awaited is a pod for which a node may be coming.
type Awaited struct {
	Namespace string
	UID       types.UID
	// Capacity is the type that the pod was sent to.
	Capacity capacity.Type
	// Requirements is what the pod asks for.
	Requirements capacity.Requirements
}

// Coming reports whether an autoscaler says that a node is on its way for a pod. limit is how long a node takes at most.
func (s *Autoscalers) Coming(ctx context.Context, t *Table, pod *Awaited, labels capacity.Labels, now time.Time, limit time.Duration) bool {
	claims := s.nodeClaims(ctx)
	if len(claims.claims) > 0 {
		t.Autoscaled()
	}
	needs := capacity.NodeRequirementsOf(pod.Requirements)
	if slices.ContainsFunc(claims.claims, func(c nodeClaim) bool { return c.comesFor(pod, needs, labels, now, limit) }) {
		return true
	}
	return s.eventSays(ctx, t, pod, claims.refused, now, limit)
}

// eventSays reports whether an Event on the pod says that a node is on its way.
func (s *Autoscalers) eventSays(ctx context.Context, t *Table, pod *Awaited, nominations bool, now time.Time, limit time.Duration) bool {
	recent := func(reason string) (time.Time, bool) {
		at, found := s.events(ctx, pod.Namespace, reason).events[pod.UID]
		return at, found && now.Sub(at) < limit
	}
	if grown, ok := recent(eventScaledUp); ok {
		t.Autoscaled()
		if taken, ok := recent(eventNotScaledUp); !ok || !taken.After(grown) {
			return true
		}
	}
	if !nominations { // NodeClaims could be read, and they know better what happened to it
		return false
	}
	_, ok := recent(eventNominated)
	return ok
}

// Problems says what cannot be read; empty: everything that exists can be.
func (s *Autoscalers) Problems() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, read := range s.known {
		if read.problem != "" && !slices.Contains(all, read.problem) {
			all = append(all, read.problem)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// events returns when pods of a namespace last had an Event of a reason.
func (s *Autoscalers) events(ctx context.Context, namespace, reason string) signsRead {
	return s.read(ctx, reason+"/"+namespace, func(ctx context.Context, into *signsRead) error {
		into.events = map[types.UID]time.Time{}
		list := &corev1.EventList{}
		return s.pages(ctx, list, func() {
			for i := range list.Items {
				e := &list.Items[i]
				into.events[e.InvolvedObject.UID] = when.Later(into.events[e.InvolvedObject.UID], timeOf(e))
			}
		}, func() { clear(into.events) }, client.InNamespace(namespace), client.MatchingFields{"reason": reason})
	})
}

// timeOf returns when an Event was last seen.
func timeOf(e *corev1.Event) time.Time {
	at := when.Later(e.EventTime.Time, e.LastTimestamp.Time)
	if e.Series != nil {
		at = when.Later(at, e.Series.LastObservedTime.Time)
	}
	if at.IsZero() {
		return e.CreationTimestamp.Time
	}
	return at
}

// pages lists page by page, at most so many. restart forgets what each took, for the list begins again.
func (s *Autoscalers) pages(ctx context.Context, list client.ObjectList, each, restart func(), options ...client.ListOption) error {
	left := signPages
	return paging.Pages(ctx, s.live(), list, func() (more bool) {
		each()
		left--
		return left > 0
	}, restart, options...)
}

// read returns what is known about one thing, and reads it if that is not fresh. What cannot be read says nothing.
func (s *Autoscalers) read(ctx context.Context, what string, read func(context.Context, *signsRead) error) signsRead {
	known := s.last(what)
	if known.fresh(time.Now()) {
		return known.usable(time.Now())
	}
	ctx, cancel := context.WithTimeout(ctx, signTimeout)
	defer cancel()
	done := s.flights.DoChan(what, func() (any, error) {
		// Not the context of whoever came first: others wait for the same answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), signTimeout)
		defer cancel()
		found := signsRead{}
		err := read(ctx, &found)
		s.store(what, &found, err)
		return nil, nil
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
	known = s.last(what)
	return known.usable(time.Now())
}

// fresh reports whether it is too soon to ask again, whatever came of it.
func (r *signsRead) fresh(now time.Time) bool {
	if r.refused {
		return now.Sub(r.asked) < signRefused
	}
	return now.Sub(r.asked) < signTTL
}

// usable returns what was read, and nothing if that was too long ago.
func (r *signsRead) usable(now time.Time) signsRead {
	if r.refused || now.Sub(r.at) < signStale {
		return *r
	}
	return signsRead{}
}

func (s *Autoscalers) last(what string) signsRead {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[what]
}

// store remembers what was read. A reading that failed leaves what was known before, unless it will fail again.
func (s *Autoscalers) store(what string, found *signsRead, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	found.at = now
	kind, _, _ := strings.Cut(what, "/")
	switch {
	case err == nil:
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		*found = signsRead{refused: true}
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		*found = signsRead{refused: true, problem: mayNotList(kind)}
	default:
		*found = s.known[what]
	}
	for key, read := range s.known { // namespaces come and go
		if now.Sub(read.asked) > 2*signRefused {
			delete(s.known, key)
		}
	}
	found.asked = now
	s.known[what] = *found
}

// mayNotList says what may not be read.
func mayNotList(kind string) string {
	if kind != kindNodeClaims {
		kind = "events"
	}
	return "the hub may not list " + kind
}
