package spot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

const (
	// budgetRetry is when an eviction that the API server refused is tried again, if no change of the budget comes first.
	budgetRetry = 5 * time.Second
	// conflictRetry is the same for pods of several budgets, which the API server never lets go: somebody has to act. No API server is
	// obeyed that asks for more time.
	conflictRetry = time.Minute
	// maxRefusal is how many bytes are kept of what an API server says of a refusal.
	maxRefusal = 1 << 10
)

// refusal is the API server's word that a pod may not be evicted now.
type refusal struct {
	pods    int    // that were refused, or not tried because of it
	budget  string // empty: it did not say
	message string
	retry   time.Duration
}

// evict takes pods away, and collects what happened to it.
func (a *action) evict(ctx context.Context, batch []plan.Eviction) {
	a.eviction.run(ctx, a.subject.client, a.dir, a.subject.key.Namespace, batch)
	for _, d := range a.eviction.denied {
		a.denials.add(d, a.now.Add(denialRetry))
	}
	a.errs.add(a.eviction.errs.join())
	a.eviction.denied, a.eviction.errs = nil, errorList{}
}

// evict takes pods away, and returns how many were evicted for each purpose; see eviction.
func (e *Engine) evict(ctx context.Context, c client.Client, dir *directory, namespace string, batch []plan.Eviction) (map[plan.Purpose]int, *refusal, error) {
	b := eviction{evicted: map[plan.Purpose]int{}}
	b.run(ctx, c, dir, namespace, batch)
	return b.evicted, b.refused, b.errs.join()
}

// eviction takes pods away, through the API that honours disruption budgets and only the pods with these UIDs. The slot of each
// is free before the call, for its replacement may be admitted before the call returns. A refusal by a budget is no error: the
// pod waits, and with it those for which the same would be said. Nor is one by an admission policy, which speaks of one pod.
type eviction struct {
	mu      sync.Mutex
	evicted map[plan.Purpose]int
	refused *refusal
	ready   bool     // what was refused served; what does not serve may go all the same
	denied  []string // what admission policies said
	errs    errorList
}

// run evicts a batch.
func (b *eviction) run(ctx context.Context, c client.Client, dir *directory, namespace string, batch []plan.Eviction) {
	var group errgroup.Group // whose failures do not cut off the calls that are under way
	group.SetLimit(parallelWrites)
	for i := range batch {
		group.Go(func() error {
			b.errs.add(b.one(ctx, c, dir, namespace, &batch[i]))
			return nil
		})
	}
	_ = group.Wait() // the errors are collected
}

// one evicts one pod.
func (b *eviction) one(ctx context.Context, c client.Client, dir *directory, namespace string, move *plan.Eviction) error {
	o := dir.owner(ownerKey{namespace, move.Owner})
	switch {
	case b.pointless(move):
		return nil
	case o == nil && move.For != plan.PurposeFinish:
		return nil // the owner is gone, and its pods are going
	case o != nil && !o.letGo(move.Pod):
		return nil // gone already
	}
	err := evictPod(ctx, c, namespace, move)
	if err == nil || apierrors.IsNotFound(err) || (apierrors.IsConflict(err) && move.Version == 0) {
		b.done(move) // or it was gone before us
		dir.noteMove(o, report.MoveOfEviction(move, time.Now()))
		return nil
	}
	word := refusalOf(err, move.Name)
	if o != nil {
		o.failed(move.Pod, move.For, word == nil && unanswered(err))
	}
	message, denied := denialOf(err)
	switch {
	case apierrors.IsConflict(err):
		return nil // it has changed since it was planned: its event leads to another plan
	case word != nil:
		b.refuse(word, move.Ready)
		return nil
	case denied && byAdmission(message):
		b.deny(fmt.Sprintf("pod %s cannot be evicted: %s", move.Name, message))
		return nil
	}
	return fmt.Errorf("evict pod %s/%s: %w", namespace, move.Name, err)
}

func (b *eviction) deny(message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied = append(b.denied, message)
}

// pointless counts a pod with those that wait when the same word would be said of it.
func (b *eviction) pointless(move *plan.Eviction) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused == nil || (!move.Ready && b.ready) {
		return false
	}
	b.refused.pods++
	return true
}

func (b *eviction) done(move *plan.Eviction) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evicted[move.For]++
}

func (b *eviction) refuse(word *refusal, ready bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused != nil {
		word.pods += b.refused.pods
		ready = ready && b.ready
	}
	b.refused, b.ready = word, ready
}

// letGo frees the slot of a pod that is about to be evicted; false when it is going already.
func (o *owner) letGo(pod types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.slots.Free(pod, time.Now())
}

// failed takes back that a pod was to be evicted or released, unless the write may have been done all the same.
func (o *owner) failed(pod types.UID, purpose plan.Purpose, doubt bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if doubt {
		o.slots.Unanswered(pod, purpose, time.Now())
	} else {
		o.slots.Restore(pod)
	}
}

// unanswered reports whether a write that failed may have been done: the member did not answer, or what answered does not know,
// such as a load balancer before an API server, or an API server whose storage did not answer. An internal error that an API
// server explains, of a webhook for instance, came before its storage.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !clusters.NotSent(err)
	}
	answer := status.Status()
	return answer.Code >= http.StatusInternalServerError &&
		(answer.Reason != metav1.StatusReasonInternalError || apierrors.IsUnexpectedServerError(err))
}

// namedBudget finds the name in what the API server says of a refused eviction.
var namedBudget = regexp.MustCompile(`[Dd]isruption budget "?([a-z0-9][-a-z0-9.]*)"? `)

// refusalOf reads a refusal of the API server off an error; nil: it is another error.
func refusalOf(err error, pod string) *refusal {
	r := &refusal{pods: 1, retry: budgetRetry, message: phrase.Line(fmt.Sprintf("pod %s cannot be evicted now: %s", pod, causeOf(err)), maxRefusal)}
	switch {
	case apierrors.IsTooManyRequests(err):
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			r.retry = min(max(r.retry, time.Duration(seconds)*time.Second), conflictRetry)
		}
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "more than one PodDisruptionBudget"):
		r.retry = conflictRetry
	default:
		return nil
	}
	if found := namedBudget.FindStringSubmatch(r.message); found != nil {
		r.budget = found[1]
	}
	return r
}

// causeOf is what the API server says of a refused eviction: the cause names the disruption budget and what it needs.
func causeOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Type == policyv1.DisruptionBudgetCause {
				return cause.Message
			}
		}
	}
	return err.Error()
}

func evictPod(ctx context.Context, c client.Client, namespace string, move *plan.Eviction) error {
	preconditions := metav1.Preconditions{UID: &move.Pod}
	if move.Version != 0 {
		preconditions.ResourceVersion = new(strconv.FormatUint(move.Version, 10))
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: move.Name}}
	return c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: namespace, Name: move.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &preconditions},
	})
}
