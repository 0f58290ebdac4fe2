package placing

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

var deploymentScale = schema.GroupResource{Group: "apps", Resource: "deployments/scale"}

func TestAWriteThatFailsOnceCostsAMemberNothing(t *testing.T) {
	for name, failure := range map[string]error{
		"503": apierrors.NewServiceUnavailable("overloaded"), "timeout": context.DeadlineExceeded, "conflict": apierrors.NewConflict(deploymentScale, "web", errors.New("changed")),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, web(9, 3))
			b.rounds(4)
			b.refuses["a"] = failure
			b.ask(12)
			for range 4 {
				b.rounds(1)
				if b.state("a") == v1alpha1.MemberOut || b.views["b"].Replicas > 4 || b.views["c"].Replicas > 4 {
					t.Fatalf("it is made up for at once: %+v", b.views)
				}
			}
			delete(b.refuses, "a")
			if b.rounds(6); b.views["a"].Replicas != 4 || b.ready() != 12 {
				t.Errorf("%+v", b.views)
			}
		})
	}
}

func TestWritesThatGoOnFailingAreMadeUpForAfterTheGrace(t *testing.T) {
	b := newBench(t, web(9, 3))
	b.rounds(4)
	done := len(b.log)
	b.refuses["a"] = apierrors.NewServiceUnavailable("overloaded")
	b.ask(12)
	p := b.rounds(40)
	if b.state("a") != v1alpha1.MemberOut || b.views["b"].Replicas+b.views["c"].Replicas != 12 {
		t.Errorf("%+v", b.views)
	}
	if c := apimeta.FindStatusCondition(p.Status.Conditions, reconcile.ConditionReady); c.Reason != v1alpha1.ReasonWriteFailed {
		t.Errorf("%+v", c)
	}
	if tries := b.ran("scale a", done); tries > 12 {
		t.Errorf("%d tries in 80 s", tries)
	}
}

// A member that refuses counts again when it would let a write through, and not for a moment before.
func TestAMemberThatRefusesIsAskedBeforeItCountsAgain(t *testing.T) {
	b := newBench(t, web(9, 3))
	b.rounds(4)
	b.refuses["a"] = apierrors.NewForbidden(deploymentScale, "web", errors.New("no right"))
	b.ask(12)
	b.rounds(10)
	elsewhere := b.views["b"].Replicas + b.views["c"].Replicas
	again := newBench(t, b.read())
	again.views, again.refuses = b.views, b.refuses
	for _, hub := range []*bench{b, again} {
		for range 60 {
			if hub.rounds(1); hub.views["b"].Replicas+hub.views["c"].Replicas != elsewhere {
				t.Fatalf("replicas leave the others while it still refuses: %+v", hub.views)
			}
		}
	}
	delete(again.refuses, "a")
	if again.rounds(60); again.ready() != 12 || again.views["a"].Replicas != 4 {
		t.Errorf("%+v", again.views)
	}
}

func TestWhenToTryAgain(t *testing.T) {
	r := refusal{}
	if !r.due(epoch) {
		t.Error("it has not failed yet")
	}
	now, waits := epoch, []time.Duration{}
	for range 6 {
		r = r.again(apierrors.NewServiceUnavailable("overloaded"), now)
		wait := time.Duration(0)
		for ; !r.due(now.Add(wait)); wait += time.Second {
			continue
		}
		now, waits = now.Add(wait), append(waits, wait)
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 15, 15} {
		if waits[i] != want*time.Second {
			t.Errorf("%v", waits)
		}
	}
	if r = r.again(apierrors.NewForbidden(deploymentScale, "web", nil), now); r.due(now.Add(refusalHolds-time.Second)) || !r.due(now.Add(refusalHolds)) {
		t.Errorf("%+v", r)
	}
}
