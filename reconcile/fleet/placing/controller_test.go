package placing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

func web(replicas, floor int) *v1alpha1.FleetPlacement {
	p := placementOf(seventy(replicas, floor))
	p.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	return p
}

func TestWhatIsDecidedIsWrittenDownBeforeItIsDone(t *testing.T) {
	b := newBench(t, web(9, 3))
	p := b.rounds(2) // in the first one members are asked
	if len(p.Finalizers) != 1 {
		t.Errorf("finalizers: %v", p.Finalizers)
	}
	want := []string{"status", "split", "scale"}
	for i, step := range b.log {
		at := min(i, 1)
		if i > 3 {
			at = 2
		}
		if step[:5] != want[at][:5] {
			t.Fatalf("%d: %v", i, b.log)
		}
	}
	p = b.rounds(3)
	if c := apimeta.FindStatusCondition(p.Status.Conditions, reconcile.ConditionReady); c == nil || c.Status != metav1.ConditionTrue || b.ready() != 9 {
		t.Errorf("%+v", p.Status)
	}
	done := len(b.log)
	if b.rounds(5); len(b.log) != done {
		t.Errorf("at rest: %v", b.log[done:])
	}
}

func TestNothingIsDoneThatCannotBeWrittenDown(t *testing.T) {
	b := newBench(t, web(9, 3))
	b.hubDown = errors.New("the hub cluster is down")
	b.rounds(3)
	for _, step := range b.log {
		if step != "status" {
			t.Errorf("%v", b.log)
		}
	}
	b.hubDown = nil
	if b.rounds(4); b.ready() != 9 {
		t.Errorf("%d are ready", b.ready())
	}
}

func TestAMemberThatRefusesIsMadeUpForElsewhere(t *testing.T) {
	b := newBench(t, web(9, 3))
	b.refuses["a"] = apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments/scale"}, "web", errors.New("no right"))
	p := b.rounds(6)
	if b.ready() != 9 || b.views["a"].Replicas != 0 {
		t.Errorf("%+v", b.views)
	}
	if c := apimeta.FindStatusCondition(p.Status.Conditions, reconcile.ConditionReady); c.Reason != v1alpha1.ReasonWriteFailed {
		t.Errorf("%+v", c)
	}
	delete(b.refuses, "a")
	if b.rounds(40); b.views["a"].Replicas != 3 || b.ready() != 9 {
		t.Errorf("%+v", b.views)
	}
}

func TestAnAutoscalerIsLookedForBeforeAnythingIsWritten(t *testing.T) {
	b := newBench(t, web(9, 3))
	to, _ := b.options.Connect("a")
	if err := to.Client.Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"},
		Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
	}); err != nil {
		t.Fatal(err)
	}
	p := b.rounds(5)
	for _, step := range b.log {
		if step == "scale a" {
			t.Errorf("%v", b.log)
		}
	}
	if b.ready() != 9 || p.Status.Members[0].State != v1alpha1.MemberOut || len(b.splits["a"]) > 0 {
		t.Errorf("%+v %v", p.Status, b.splits)
	}
}

func TestAReplicaThatDoesNotActFollows(t *testing.T) {
	b := newBench(t, web(9, 3))
	p := b.rounds(4)
	standby := newBench(t, p)
	standby.acts = false
	standby.rounds(3)
	for member, split := range b.splits {
		if !maps.Equal(standby.splits[member], split) {
			t.Errorf("%s: %v, want %v", member, standby.splits[member], split)
		}
	}
	for _, step := range standby.log {
		if step[:5] != "split" {
			t.Errorf("%v", standby.log)
		}
	}
}

func TestAHubThatStartsKnowsTheSplitsBeforeAnythingElse(t *testing.T) {
	b := newBench(t, web(9, 3))
	p := b.rounds(4)
	again := newBench(t, p)
	if fmt.Sprint(again.splits) != fmt.Sprint(b.splits) {
		t.Errorf("%v, want %v", again.splits, b.splits)
	}
	again.views = map[string]spot.FleetView{} // nothing is seen yet
	done := len(again.log)
	if again.rounds(3); len(again.log) != done {
		t.Errorf("before anything is seen: %v", again.log[done:])
	}
	again.views = b.views
	if again.rounds(3); len(again.log) != done {
		t.Errorf("after a restart: %v", again.log[done:])
	}
}

func TestADeletedPlacementIsLetGo(t *testing.T) {
	b := newBench(t, web(9, 3))
	p := b.rounds(4)
	if err := b.hub.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if left := b.rounds(2); left != nil {
		t.Errorf("%+v", left)
	}
	for member, splits := range b.splits {
		if len(splits) > 0 {
			t.Errorf("%s: %v", member, splits)
		}
	}
	if b.ready() != 9 {
		t.Errorf("%d are ready", b.ready())
	}
}

func TestAPausedPlacementKeepsWhatItHas(t *testing.T) {
	b := newBench(t, web(9, 3))
	p := b.rounds(4)
	p.Annotations = map[string]string{reconcile.AnnotationPaused: "true"}
	p.Spec.Replicas = new(int32(30))
	if err := b.hub.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(b.splits)
	p = b.rounds(3)
	if c := apimeta.FindStatusCondition(p.Status.Conditions, reconcile.ConditionReady); b.ready() != 9 || fmt.Sprint(b.splits) != before || c.Reason != reconcile.ReasonPaused {
		t.Errorf("%+v, %v", p.Status, b.splits)
	}
	p.Annotations = nil
	if err := b.hub.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if b.rounds(4); b.ready() != 30 {
		t.Errorf("%d are ready", b.ready())
	}
}

func TestAHubClusterWithoutTheKindHasNoPlacements(t *testing.T) {
	unknown := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return &apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.Kind}}
		},
	}).Build()
	b := newBench(t)
	if _, err := New(t.Context(), Options{Hub: unknown, Workloads: b}); err != nil {
		t.Error(err)
	}
}
