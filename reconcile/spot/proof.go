package spot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

const (
	// proofPods bounds how many pods a live list after a takeover reads of one owner, and proofTimeout how long it may take: with
	// [plan.SettleTime] nobody needs it any more. Admissions wait for it for a second at most.
	proofPods    = policy.MaxSlot
	proofTimeout = plan.SettleTime
	// proofsAtOnce bounds the live lists after a takeover that a member answers at a time.
	proofsAtOnce = 4
	// proofRetry is how long nothing is listed for an owner after a list of its pods has failed.
	proofRetry = 2 * time.Second
)

// proofs reads the pods of owners live after a takeover, one list for all admissions that wait for the same owner; see
// [Accounting.TakeOver].
type proofs struct {
	flights singleflight.Group
	room    chan struct{}
}

func newProofs() proofs { return proofs{room: make(chan struct{}, proofsAtOnce)} }

var (
	errProofFailed = errors.New("listing the pods of the owner has failed")
	errProofLate   = errors.New("the pods of the owner are still being listed")
)

// prove gives the accounting of an owner a live list of its pods. An error says that there is none for now.
func (m *member) prove(ctx context.Context, dir *directory, s *standing) error {
	o, selector := s.owner, s.selector
	if o.proofFailed(time.Now()) {
		return errProofFailed
	}
	result := m.proofs.flights.DoChan(o.String(), func() (any, error) {
		// Not the context of the admission that came first: others wait for the same list.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofTimeout)
		defer cancel()
		err := m.proofs.read(ctx, m.cluster.Live(), o, selector, func(pod *corev1.Pod) plan.Pod { return m.engine.podFacts(dir, pod) })
		o.noteProof(err, time.Now())
		return nil, err
	})
	late := time.NewTimer(slots.StoreTime + liveReadTimeout) // the list may have to wait until every admitted pod is stored
	defer late.Stop()
	select {
	case done := <-result:
		return done.Err
	case <-late.C:
		return errProofLate // it continues, for those that come next
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read lists the pods of an owner once every pod that was admitted before the takeover is stored.
func (p *proofs) read(ctx context.Context, live client.Reader, o *owner, selector *metav1.LabelSelector, facts func(*corev1.Pod) plan.Pod) error {
	if err := sleepUntil(ctx, o.provenBy()); err != nil {
		return err
	}
	select {
	case p.room <- struct{}{}:
		defer func() { <-p.room }()
	case <-ctx.Done():
		return ctx.Err()
	}
	asked := time.Now()
	pods, err := listPods(ctx, live, o, selector, facts)
	if err != nil {
		return fmt.Errorf("list the pods of an owner in namespace %s: %w", o.namespace, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slots.Sync(pods, asked, time.Now())
	o.signalLocked()
	return nil
}

// listPods reads the facts of all pods that an owner controls, page by page.
func listPods(ctx context.Context, live client.Reader, o *owner, selector *metav1.LabelSelector, facts func(*corev1.Pod) plan.Pod) ([]plan.Pod, error) {
	matching, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	var pods []plan.Pod
	err = ownedPods(ctx, live, o.uid, o.namespace, matching, func(pod *corev1.Pod) (more bool) {
		pods = append(pods, facts(pod))
		return len(pods) <= proofPods
	}, func() { pods = pods[:0] })
	if err == nil && len(pods) > proofPods {
		err = fmt.Errorf("more than %d pods", proofPods)
	}
	return pods, err
}

func sleepUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// provenBy is [Accounting.ProvenBy] under the lock.
func (o *owner) provenBy() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.slots.ProvenBy()
}

// noteProof remembers that a live list failed.
func (o *owner) noteProof(err error, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unprovable = time.Time{}
	if err != nil {
		o.unprovable = now.Add(proofRetry)
	}
}

// proofFailed reports whether a live list has failed a moment ago.
func (o *owner) proofFailed(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now.Before(o.unprovable)
}
