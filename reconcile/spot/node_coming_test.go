package spot

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// eventServer is an API server that has Events, and nothing of Karpenter's.
type eventServer struct {
	client.Reader
	events []corev1.Event
	lists  atomic.Int32
}

func (s *eventServer) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	s.lists.Add(1)
	events, ok := list.(*corev1.EventList)
	if !ok {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "karpenter.sh"}}
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	events.Items = slices.DeleteFunc(slices.Clone(s.events), func(e corev1.Event) bool {
		return e.Namespace != o.Namespace || o.FieldSelector.String() != "reason="+e.Reason
	})
	return nil
}

func TestAPodIsNotJudgedBeforeItWasLookedWhetherANodeIsComing(t *testing.T) {
	now, settings := time.Now(), plan.Settings{PendingTimeout: time.Minute}
	server := &eventServer{}
	d := newDirectory(spottest.DefaultKeys, policy.Defaults{}, nil)
	d.capacity, d.signs = testCapacity(t), nodes.NewAutoscalers(func() client.Reader { return server })
	ask := func(waited time.Duration) (plan.Observed, time.Time) {
		key, o := dryWorkload(d, waited, now)
		recheck := d.observeSupply(context.Background(), key, &o, settings, now)
		return o, recheck
	}
	if ask(50 * time.Second); server.lists.Load() > 0 {
		t.Error("it is asked before it matters")
	}
	if d.droughts.Step(now.Add(20 * time.Second)); d.droughts.Decisions(capacity.Spot) > 0 {
		t.Error("it is judged, and nobody has looked")
	}
	server.events = []corev1.Event{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Reason: "TriggeredScaleUp",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", UID: "1"}, LastTimestamp: metav1.NewTime(now)}}
	o, recheck := ask(time.Minute)
	if !o.Pods[0].NodeComing || !o.Owners[0].DrySince.IsZero() || !recheck.Equal(now.Add(shortage.BindTime)) {
		t.Errorf("node coming %v, dry since %s, looked at again in %s", o.Pods[0].NodeComing, o.Owners[0].DrySince, recheck.Sub(now))
	}
	server.events = nil
	d.signs = nodes.NewAutoscalers(func() client.Reader { return server })
	now = now.Add(shortage.BindTime)
	if o, _ := ask(2 * time.Minute); o.Pods[0].NodeComing || o.Owners[0].DrySince.IsZero() {
		t.Errorf("the sign has gone: node coming %v, dry since %s", o.Pods[0].NodeComing, o.Owners[0].DrySince)
	}
}

func TestOfAPodIsKeptWhatTellsThatItHasANodeOrShallStay(t *testing.T) {
	kind := podKind(spottest.DefaultKeys, spottest.MustLabels(t))
	src := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{NominatedNodeName: "n1"}}
	read := func() plan.Pod {
		dst := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: src.Spec.NodeName}}
		kind.Keep(src, dst)
		return plan.PodOf(spottest.DefaultKeys.OfPods(), dst, capacity.Spot)
	}
	if p := read(); !p.NodeComing || p.DoNotDisrupt {
		t.Errorf("%+v", p)
	}
	src.Spec.NodeName = "n1"
	if read().NodeComing {
		t.Error("it is there")
	}
	for _, c := range []struct {
		key, value string
		stays      bool
	}{
		{"karpenter.sh/do-not-disrupt", "true", true}, {"karpenter.sh/do-not-disrupt", "false", false},
		{"cluster-autoscaler.kubernetes.io/safe-to-evict", "false", true}, {"cluster-autoscaler.kubernetes.io/safe-to-evict", "true", false},
	} {
		src.Annotations = map[string]string{c.key: c.value}
		if read().DoNotDisrupt != c.stays {
			t.Errorf("%s: %s: it stays: %v", c.key, c.value, !c.stays)
		}
	}
}
