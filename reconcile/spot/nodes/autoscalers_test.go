package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// signServer is an API server that has NodeClaims and Events, or refuses to list them.
type signServer struct {
	client.Reader
	claims  []unstructured.Unstructured
	events  []corev1.Event
	refuses error // for claims
	hangs   bool
	lists   atomic.Int32
}

func (s *signServer) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	s.lists.Add(1)
	if s.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	switch list := list.(type) {
	case *unstructured.UnstructuredList:
		if o.Limit == 0 {
			return errors.New("a list without pages")
		}
		list.Items = s.claims
		return s.refuses
	case *corev1.EventList:
		list.Items = nil
		for i := range s.events {
			if e := &s.events[i]; e.Namespace == o.Namespace && o.FieldSelector.String() == "reason="+e.Reason {
				list.Items = append(list.Items, *e)
			}
		}
		return nil
	}
	return fmt.Errorf("%T is not expected", list)
}

func (s *signServer) event(reason string, uid types.UID, at time.Time) {
	s.events = append(s.events, corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Reason: reason,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", UID: uid}, LastTimestamp: metav1.NewTime(at)})
}

// nodeClaimOn is a claim of a capacity type that was launched at a time.
func nodeClaimOn(capacityType string, at time.Time, conditions ...string) unstructured.Unstructured {
	var u unstructured.Unstructured
	u.Object = map[string]any{}
	u.SetLabels(map[string]string{spottest.SteerKey: capacityType, "zone": "a"})
	u.SetCreationTimestamp(metav1.NewTime(at))
	var list []any
	for _, c := range conditions {
		list = append(list, map[string]any{"type": c, "status": "True"})
	}
	_ = unstructured.SetNestedSlice(u.Object, list, "status", "conditions")
	_ = unstructured.SetNestedStringMap(u.Object, map[string]string{"cpu": "4", "memory": "8Gi"}, "status", "allocatable")
	return u
}

// signWorld is a member whose nodes and autoscalers are asked.
type signWorld struct {
	nodes    *Table
	signs    *Autoscalers
	capacity capacity.Labels
}

func newSignWorld(t *testing.T, server *signServer) *signWorld {
	t.Helper()
	return &signWorld{NewTable(), NewAutoscalers(func() client.Reader { return server }), spottest.MustLabels(t)}
}

func (w *signWorld) nodeComing(pod *Awaited, now time.Time) bool {
	const limit = 10 * time.Minute
	return w.nodes.Starting(pod, w.capacity, now, limit) || w.signs.Coming(context.Background(), w.nodes, pod, w.capacity, now, limit)
}

func noSuchKind() error {
	return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "karpenter.sh", Kind: "NodeClaim"}}
}

func forbiddenClaims() error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "karpenter.sh", Resource: "nodeclaims"}, "", errors.New("no"))
}

func TestEachSignOfANodeThatIsOnItsWayIsRead(t *testing.T) {
	now := time.Now()
	needsZone := func(zone string) capacity.Requirements {
		return capacity.Requirements{CPU: 500, Constraints: []string{capacity.ConstraintSelector + "zone=" + zone}}
	}
	for name, c := range map[string]struct {
		server *signServer
		shape  capacity.Requirements
		coming bool
	}{
		"nothing says so":              {&signServer{}, capacity.Requirements{CPU: 500}, false},
		"a claim was launched":         {&signServer{claims: []unstructured.Unstructured{nodeClaimOn("spot", now, "Launched")}}, capacity.Requirements{CPU: 500}, true},
		"a claim is registered":        {&signServer{claims: []unstructured.Unstructured{nodeClaimOn("spot", now, "Launched", "Registered")}}, capacity.Requirements{CPU: 500}, true},
		"a claim was not launched":     {&signServer{claims: []unstructured.Unstructured{nodeClaimOn("spot", now)}}, capacity.Requirements{CPU: 500}, false},
		"a claim's node is there":      {&signServer{claims: []unstructured.Unstructured{nodeClaimOn("spot", now, "Launched", "Initialized")}}, capacity.Requirements{CPU: 500}, false},
		"a claim of the other type":    {&signServer{claims: []unstructured.Unstructured{nodeClaimOn("on-demand", now, "Launched")}}, capacity.Requirements{CPU: 500}, false},
		"a claim that takes too long":  {&signServer{claims: []unstructured.Unstructured{nodeClaimOn("spot", now.Add(-time.Hour), "Launched")}}, capacity.Requirements{CPU: 500}, false},
		"a claim that is too small":    {&signServer{claims: []unstructured.Unstructured{nodeClaimOn("spot", now, "Launched")}}, capacity.Requirements{CPU: 5000}, false},
		"a claim in the zone":          {&signServer{claims: []unstructured.Unstructured{nodeClaimOn("spot", now, "Launched")}}, needsZone("a"), true},
		"a claim in another zone":      {&signServer{claims: []unstructured.Unstructured{nodeClaimOn("spot", now, "Launched")}}, needsZone("b"), false},
		"a label that it has not yet":  {&signServer{claims: []unstructured.Unstructured{nodeClaimOn("spot", now, "Launched")}}, capacity.Requirements{Constraints: []string{capacity.ConstraintSelector + "team=x"}}, true},
		"a node group grows":           {scaledUp(now, 0), capacity.Requirements{CPU: 500}, true},
		"it grew long ago":             {scaledUp(now.Add(-time.Hour), 0), capacity.Requirements{CPU: 500}, false},
		"it was taken back":            {scaledUp(now.Add(-time.Minute), 30*time.Second), capacity.Requirements{CPU: 500}, false},
		"it grew after it had not":     {scaledUp(now.Add(-time.Minute), -30*time.Second), capacity.Requirements{CPU: 500}, true},
		"a nomination beside claims":   {nominated(now, nil), capacity.Requirements{CPU: 500}, false},
		"a nomination without claims":  {nominated(now, noSuchKind()), capacity.Requirements{CPU: 500}, true},
		"a nomination, claims are hid": {nominated(now, forbiddenClaims()), capacity.Requirements{CPU: 500}, true},
		"an Event on another pod":      {otherPod(now), capacity.Requirements{CPU: 500}, false},
		"a claim with a long quantity": {&signServer{claims: []unstructured.Unstructured{oddClaim(now)}}, capacity.Requirements{CPU: 500}, true},
	} {
		d := newSignWorld(t, c.server)
		pod := &Awaited{Namespace: "shop", UID: "p", Capacity: capacity.Spot, Requirements: c.shape}
		if got := d.nodeComing(pod, now); got != c.coming {
			t.Errorf("%s: a node is coming: %v", name, got)
		}
	}
}

func scaledUp(at time.Time, taken time.Duration) *signServer {
	s := &signServer{}
	s.event(eventScaledUp, "p", at)
	if taken != 0 {
		s.event(eventNotScaledUp, "p", at.Add(taken))
	}
	return s
}

func nominated(at time.Time, refuses error) *signServer {
	s := &signServer{refuses: refuses}
	s.event(eventNominated, "p", at)
	return s
}

func otherPod(at time.Time) *signServer {
	s := &signServer{}
	s.event(eventScaledUp, "q", at)
	return s
}

func oddClaim(at time.Time) unstructured.Unstructured {
	claim := nodeClaimOn("spot", at, "Launched")
	_ = unstructured.SetNestedStringMap(claim.Object, map[string]string{"cpu": "1e999999999"}, "status", "allocatable")
	return claim
}

func TestANodeThatIsStartingIsASignUntilPodsCanBeBoundToIt(t *testing.T) {
	now := time.Now()
	node := func(age, ready time.Duration, taints ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "s1", CreationTimestamp: metav1.NewTime(now.Add(-age)), Labels: map[string]string{spottest.SteerKey: "spot"}}}
		c := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastHeartbeatTime: metav1.NewTime(now)}
		if ready > 0 {
			c.Status, c.LastTransitionTime = corev1.ConditionTrue, metav1.NewTime(now.Add(-ready))
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}, c}
		for _, key := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		return n
	}
	for name, c := range map[string]struct {
		node   *corev1.Node
		coming bool
	}{
		"it is not ready":             {node(time.Minute, 0), true},
		"it has a start taint":        {node(time.Minute, 50*time.Second, "node.cilium.io/agent-not-ready"), true},
		"Karpenter does not know it":  {node(time.Minute, 50*time.Second, "karpenter.sh/unregistered"), true},
		"it has just become ready":    {node(time.Minute, 5*time.Second), true},
		"it is ready":                 {node(2*time.Minute, time.Minute), false},
		"it is ready, for others":     {node(2*time.Minute, time.Minute, "example.com/team"), false},
		"it should be there for long": {node(time.Hour, 0), false},
		"it is there, and broke":      {node(24*time.Hour, 0, corev1.TaintNodeNotReady), false},
	} {
		d := newSignWorld(t, &signServer{})
		var in Interruptions
		cached := &corev1.Node{ObjectMeta: *c.node.ObjectMeta.DeepCopy()} // with its labels
		for range 3 {                                                     // once for every controller that declares the kind
			in.Keep(c.node, cached)
		}
		if len(cached.Status.Conditions) != 1 || len(cached.Spec.Taints) > 1 || !cached.Status.Conditions[0].LastHeartbeatTime.IsZero() {
			t.Errorf("%s: more is cached than is read: %+v", name, cached)
		}
		d.nodes.Set(cached, &in, now)
		for capacityType, want := range map[capacity.Type]bool{capacity.Spot: c.coming, capacity.OnDemand: false} {
			if got := d.nodeComing(&Awaited{Capacity: capacityType}, now); got != want {
				t.Errorf("%s: a %s node is coming: %v", name, capacityType, got)
			}
		}
	}
}

func TestSignsAreReadOnceForAllPodsOfANamespaceAndAgainWhenTheyAreOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &signServer{refuses: forbiddenClaims()}
		d := newSignWorld(t, server)
		ask := func() {
			for i := range 100 {
				d.nodeComing(&Awaited{Namespace: "shop", UID: types.UID(fmt.Sprint(i)), Capacity: capacity.Spot}, time.Now())
			}
		}
		ask()
		if n := server.lists.Load(); n != 3 { // claims, scale-ups and nominations
			t.Errorf("%d lists for 100 pods", n)
		}
		time.Sleep(signTTL)
		ask()
		if n := server.lists.Load(); n != 5 {
			t.Errorf("%d lists: what is refused is not asked for again so soon", n)
		}
		if !strings.Contains(d.signs.Problems(), kindNodeClaims) {
			t.Errorf("it is not reported: %q", d.signs.Problems())
		}
		server.refuses = nil
		time.Sleep(signRefused)
		ask()
		if problems := d.signs.Problems(); problems != "" {
			t.Errorf("the right was granted, and %q is reported", problems)
		}
	})
}

func TestAMemberThatDoesNotAnswerGivesNoSign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSignWorld(t, &signServer{hangs: true})
		start := time.Now()
		for range 100 { // one is waited for, and no other
			if d.nodeComing(&Awaited{Namespace: "shop", UID: "p", Capacity: capacity.Spot}, start) {
				t.Error("a node is coming")
			}
		}
		if took := time.Since(start); took > 3*signTimeout {
			t.Errorf("it took %s", took)
		}
	})
}
