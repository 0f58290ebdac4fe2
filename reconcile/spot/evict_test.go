package spot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// answering makes a client whose evictions are answered by a function of the pod's name.
func answering(answer func(pod string) error) client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, pod client.Object, _ client.Object, _ ...client.SubResourceCreateOption) error {
			return answer(pod.GetName())
		},
	})
}

func refusedBy(budget string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget " + budget + " needs 8 healthy pods and has 8 currently"})
	return err
}

func TestAnEvictionThatFailedTakesTheSlotBackUnlessItMayHaveBeenDone(t *testing.T) {
	for name, test := range map[string]struct {
		answer  error
		purpose plan.Purpose // PurposeMove if empty
		refused bool
		doubted bool
	}{
		"refused by a budget":  {answer: refusedBy("web"), refused: true},
		"of several budgets":   {answer: apierrors.NewInternalError(errors.New("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")), refused: true},
		"forbidden":            {answer: apierrors.NewForbidden(policyv1.Resource("evictions"), "web-1-0", errors.New("no"))},
		"failed":               {answer: apierrors.NewInternalError(errors.New("etcd is gone"))},
		"fenced":               {answer: fmt.Errorf("member a: %w", clusters.ErrNotOwner)},
		"breaker open":         {answer: fmt.Errorf("member a: %w", clusters.ErrBreakerOpen)},
		"connection broken":    {answer: errors.New("the connection broke"), doubted: true},
		"no answer in time":    {answer: context.DeadlineExceeded, doubted: true},
		"server gave up":       {answer: apierrors.NewTimeoutError("request did not complete within the allotted timeout", 1), doubted: true},
		"storage did not tell": {answer: &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "etcdserver: request timed out"}}, doubted: true},
		"gateway":              {answer: apierrors.NewGenericServerResponse(502, "POST", policyv1.Resource("evictions"), "web-1-0", "bad gateway", 0, true), doubted: true},
		"several budgets, as the server says it": {answer: &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}}, refused: true},
		"no connection":   {answer: &url.Error{Op: "Post", URL: "https://a", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}},
		"connection lost": {answer: &url.Error{Op: "Post", URL: "https://a", Err: &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}}, doubted: true},
		"its node goes":   {answer: context.DeadlineExceeded, purpose: plan.PurposeInterruption},
	} {
		s := newShell(t, nil, false)
		s.cache(namespace("true", nil), deployment(2, "true", mixed("70")), replicaSet(2, 2))
		pod := stored("web-1-0", s.place(incoming(0)))
		s.cache(pod)
		held := -1
		c := answering(func(string) error {
			held = s.follower.directory.owner(ownerKey{"shop", "set-web-1"}).slots.Held()
			return test.answer
		})
		n, refused, err := s.evict(context.Background(), c, s.follower.directory, "shop",
			[]plan.Eviction{{Pod: pod.UID, Name: pod.Name, Owner: "set-web-1", For: cmp.Or(test.purpose, plan.PurposeMove)}})
		if len(n) != 0 || (refused != nil) != test.refused || (err == nil) != test.refused {
			t.Errorf("%s: %v evicted, refused %v, error %v", name, n, refused, err)
		}
		o := s.follower.directory.owner(ownerKey{"shop", "set-web-1"})
		want := 1
		if test.doubted {
			want = 0
		}
		if after := o.slots.Held(); held != 0 || after != want {
			t.Errorf("%s: %d slots held during the call and %d after it, want 0 and %d", name, held, after, want)
		}
		if unsure := !o.slots.Summary(2, time.Now()).UnansweredUntil.IsZero(); unsure != test.doubted {
			t.Errorf("%s: doubted %v, want %v", name, unsure, test.doubted)
		}
	}
}

func TestARefusalNamesTheBudgetAndHoldsBackOnlyWhatServes(t *testing.T) {
	s := newShell(t, nil, false)
	s.cache(namespace("true", nil), deployment(4, "true", mixed("70")), replicaSet(4, 4))
	var batch []plan.Eviction
	for i, name := range []string{"web-1-0", "web-1-1", "web-1-2", "web-1-3"} {
		pod := stored(name, s.place(incoming(i)))
		s.cache(pod)
		batch = append(batch, plan.Eviction{Pod: pod.UID, Name: name, Owner: "set-web-1", For: plan.PurposeInterruption, Ready: i < 3})
	}
	c := answering(func(pod string) error {
		if pod == "web-1-3" {
			return nil
		}
		return refusedBy("web")
	})
	n, refused, err := s.evict(context.Background(), c, s.follower.directory, "shop", batch)
	if err != nil || n[plan.PurposeInterruption] != 1 {
		t.Errorf("%v evicted, error %v", n, err)
	}
	if refused == nil || refused.pods != 3 || refused.budget != "web" || refused.retry != budgetRetry || !strings.Contains(refused.message, "needs 8 healthy pods") {
		t.Errorf("got %+v", refused)
	}
}

func TestARefusalIsReadOffWhatTheServerSays(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		budget string
		retry  time.Duration
		none   bool
	}{
		"a budget":        {err: refusedBy("web.v2"), budget: "web.v2", retry: budgetRetry},
		"still processed": {err: apierrors.NewTooManyRequests("The disruption budget web is still being processed by the server.", 10), budget: "web", retry: 10 * time.Second},
		"a busy server":   {err: apierrors.NewTooManyRequests("busy", 1), retry: budgetRetry},
		"an hour":         {err: apierrors.NewTooManyRequests("busy", 3600), retry: conflictRetry},
		"a long message":  {err: apierrors.NewTooManyRequests(strings.Repeat("busy\n", 1<<18), 1), retry: budgetRetry},
		"two budgets":     {err: apierrors.NewInternalError(errors.New("This pod has more than one PodDisruptionBudget, which")), retry: conflictRetry},
		"another error":   {err: apierrors.NewInternalError(errors.New("etcd is gone")), none: true},
	} {
		got := refusalOf(test.err, "web-1")
		if (got == nil) != test.none || (got != nil && (got.budget != test.budget || got.retry != test.retry)) {
			t.Errorf("%s: got %+v", name, got)
		}
		if got != nil && (len(got.message) > 2<<10 || strings.Contains(got.message, "\n")) {
			t.Errorf("%s: it says %d bytes: %.80q", name, len(got.message), got.message)
		}
	}
}
