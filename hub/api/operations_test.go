package api

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// order requeues the shop's workload by way of a replica, and returns the id of the operation.
func order(t *testing.T, s *services) string {
	t.Helper()
	answer, err := s.workloads.RequeueWorkload(t.Context(), &plimsollv1.RequeueWorkloadRequest{
		Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart",
	})
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetOperation().GetState() != plimsollv1.OperationState_OPERATION_STATE_PENDING || answer.GetOperation().GetAcceptedAt() == nil {
		t.Fatalf("operation %v", answer.GetOperation())
	}
	return answer.GetOperation().GetId()
}

func follow(ctx context.Context, s *services, id string, wait time.Duration) (*plimsollv1.Operation, error) {
	answer, err := s.objects.GetOperation(ctx, &plimsollv1.GetOperationRequest{Operation: id, Wait: durationpb.New(wait)})
	return answer.GetOperation(), err
}

// local is the part of an id that the replica gave.
func local(id string) string { return id[strings.LastIndex(id, ".")+1:] }

func TestWhoWaitsForAnOperationHearsItsResultFromAnyReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, owner := twoReplicas(t)
		for name, s := range map[string]*services{"the owner": owner.services(everything{}), "another": asked.services(everything{})} {
			id := order(t, s)
			go func() {
				time.Sleep(20 * time.Second)
				owner.settle(local(id), func(r *reconcile.Operation) {
					r.Done, r.Record.LastOutcome, r.Record.LastEnded = true, reconcile.OutcomeDone, time.Now()
				})
			}()
			begun := time.Now()
			got, err := follow(t.Context(), s, id, 30*time.Second)
			if err != nil || got.GetState() != plimsollv1.OperationState_OPERATION_STATE_DONE || got.GetFinishedAt() == nil {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			if waited := time.Since(begun); waited != 20*time.Second {
				t.Errorf("%s answered after %s of the fake clock, want when it was done", name, waited)
			}
		}
	})
}

func TestAnOperationThatIsNotFinalIsAnsweredWhenTheWaitIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shop(t)
		s := r.services(everything{})
		id := order(t, s)
		for _, wait := range []time.Duration{0, 10 * time.Second} {
			got, err := follow(t.Context(), s, id, wait)
			if err != nil || got.GetState() != plimsollv1.OperationState_OPERATION_STATE_PENDING {
				t.Errorf("after %s: %v, %v", wait, got, err)
			}
		}
	})
}

func TestAnOperationSaysHowFarItsOrderIs(t *testing.T) {
	accepted := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		operation reconcile.Operation
		state     plimsollv1.OperationState
		message   string
	}{
		"queued": {reconcile.Operation{Record: reconcile.Record{State: reconcile.StateQueued}}, plimsollv1.OperationState_OPERATION_STATE_PENDING, "it waits for a worker"},
		"held":   {reconcile.Operation{Record: reconcile.Record{State: reconcile.StateHeld, Reason: "the member does not answer"}}, plimsollv1.OperationState_OPERATION_STATE_PENDING, "the member does not answer"},
		"an older run": {reconcile.Operation{Record: reconcile.Record{State: reconcile.StateRunning, LastStarted: accepted.Add(-time.Second)}},
			plimsollv1.OperationState_OPERATION_STATE_PENDING, "an earlier reconcile must end first"},
		"running": {reconcile.Operation{Record: reconcile.Record{State: reconcile.StateRunning, LastStarted: accepted.Add(time.Second)}},
			plimsollv1.OperationState_OPERATION_STATE_RUNNING, "it runs"},
		"done":      {done(reconcile.OutcomeDone, "", ""), plimsollv1.OperationState_OPERATION_STATE_DONE, "the object matches its spec"},
		"requeued":  {done(reconcile.OutcomeRequeue, "a pod is Pending", ""), plimsollv1.OperationState_OPERATION_STATE_DONE, "it will be reconciled again: a pod is Pending"},
		"an error":  {done(reconcile.OutcomeError, "", "forbidden"), plimsollv1.OperationState_OPERATION_STATE_FAILED, "forbidden"},
		"for good":  {done(reconcile.OutcomeTerminal, "", "invalid"), plimsollv1.OperationState_OPERATION_STATE_FAILED, "invalid"},
		"a panic":   {done(reconcile.OutcomePanic, "", "panic"), plimsollv1.OperationState_OPERATION_STATE_FAILED, "panic"},
		"too long":  {done(reconcile.OutcomeTimeout, "", "deadline"), plimsollv1.OperationState_OPERATION_STATE_FAILED, "deadline"},
		"gone":      {done(reconcile.OutcomeGone, "", ""), plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED, "the object no longer exists"},
		"paused":    {done(reconcile.OutcomePaused, "paused by a person", ""), plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED, "paused by a person"},
		"pending":   {done(reconcile.OutcomePending, "two are left", ""), plimsollv1.OperationState_OPERATION_STATE_DONE, "it will be reconciled again: two are left"},
		"cleaned":   {done(reconcile.OutcomeCleanedUp, "", ""), plimsollv1.OperationState_OPERATION_STATE_DONE, "it was cleaned up and can be deleted"},
		"not ours":  {done(reconcile.OutcomeNotOurs, "detached", ""), plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED, "detached"},
		"left with": {done(reconcile.OutcomeGone, "the member left", ""), plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED, "the member left"},
	} {
		c.operation.Accepted = accepted
		shown := operationMessage(resourceObjects, &c.operation)
		if shown.GetState() != c.state || shown.GetMessage() != c.message {
			t.Errorf("%s: %s %q, want %s %q", name, shown.GetState(), shown.GetMessage(), c.state, c.message)
		}
	}
}

func done(outcome reconcile.Outcome, reason, failure string) reconcile.Operation {
	return reconcile.Operation{Done: true, Record: reconcile.Record{LastOutcome: outcome, Reason: reason, LastError: failure}}
}

func TestAnOperationOfAMemberThatChangedHandsIsSuperseded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shop(t)
		s := r.services(everything{})
		id := order(t, s)
		go func() {
			time.Sleep(5 * time.Second)
			r.fleet.give("prod", "10.0.0.9:9444")
		}()
		got, err := follow(t.Context(), s, id, 30*time.Second)
		if err != nil || got.GetState() != plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED || !strings.Contains(got.GetMessage(), "has a new owner") {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestAnOwnerThatCouldNotRenewAnswersQuestionsAndTakesNoOrders(t *testing.T) {
	asked, owner := twoReplicas(t)
	owner.lapse()
	before := len(owner.operations)
	for _, r := range []*replica{asked, owner} {
		s := r.services(everything{})
		got, err := s.workloads.GetWorkload(t.Context(), &plimsollv1.GetWorkloadRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart"})
		if err != nil || got.GetWorkload().GetName() != "cart" {
			t.Errorf("%s: got %v, %v", r.address, got, err)
		}
		_, err = s.workloads.RequeueWorkload(t.Context(), &plimsollv1.RequeueWorkloadRequest{
			Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart",
		})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: an order got %v, want %s", r.address, err, codes.Unavailable)
		}
	}
	if len(owner.operations) != before || len(asked.operations) > 0 {
		t.Error("an order was accepted")
	}
}

func TestAnOperationThatItsOwnerDoesNotKnowIsNotFound(t *testing.T) {
	asked, owner := twoReplicas(t)
	s := asked.services(everything{})
	id := order(t, s)
	delete(owner.operations, local(id)) // it was restarted
	if _, err := follow(t.Context(), s, id, 0); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "it is safe to requeue again") {
		t.Errorf("got %v", err)
	}
}

func TestAnOwnerThatCouldNotRenewDeniesNoOperation(t *testing.T) {
	asked, owner := twoReplicas(t)
	id := order(t, asked.services(everything{}))
	delete(owner.operations, local(id)) // another replica accepted it while this one was frozen
	owner.lapse()
	for _, r := range []*replica{asked, owner} {
		if _, err := follow(t.Context(), r.services(everything{}), id, 0); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: got %v, want %s", r.address, err, codes.Unavailable)
		}
	}
}

func TestAnOperationIsShownOnlyForTheMemberAndTheResourceThatWereOrdered(t *testing.T) {
	r := shop(t)
	r.member("mine")
	r.fleet.give("mine", r.address)
	s := serve(t, r, nil)
	s.give("mallory", auth.Access{Verb: "get", Resource: "workloads"}, auth.Access{Verb: "get", Resource: "objects", Member: "mine"})
	key := reconcile.Key{Controller: "cron", Member: "prod"}
	r.operations["id-7"] = reconcile.Operation{ID: "id-7", Key: key, Record: reconcile.Record{Reason: canary}}
	for id, want := range map[string]codes.Code{
		"o.prod.id-7":      codes.PermissionDenied, // no right to objects of prod
		"o.mine.id-7":      codes.NotFound,         // not of that member
		"w.prod.id-7":      codes.NotFound,         // not of a workload
		"x.prod.id-7":      codes.InvalidArgument,
		"o..id-7":          codes.InvalidArgument,
		"o.prod.":          codes.InvalidArgument,
		"id-7":             codes.InvalidArgument,
		"w.prod.shop.id-0": codes.OK,
		"w.prod.pay.id-0":  codes.NotFound, // not of that namespace
		"w.prod.id-0":      codes.NotFound,
	} {
		answer, err := s.objects().GetOperation(as(t, "mallory"), &plimsollv1.GetOperationRequest{Operation: id})
		if status.Code(err) != want || strings.Contains(answer.String()+status.Convert(err).Message(), canary) {
			t.Errorf("%s: %v, %v; want %s", id, answer, err, want)
		}
	}
}
