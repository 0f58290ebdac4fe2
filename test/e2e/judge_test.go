package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// second is a time after noon.
func second(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Second))) }

// held is a state of a Lease of five seconds.
func held(by string, acquired, renewed float64) *coordinationv1.Lease {
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &by, LeaseDurationSeconds: ptr.To[int32](5),
		AcquireTime: ptr.To(metav1.NewMicroTime(second(acquired))), RenewTime: ptr.To(metav1.NewMicroTime(second(renewed))),
	}}
}

func TestAReplicaMayActAsLongAsItHasRenewedTheLease(t *testing.T) {
	for name, c := range map[string]struct {
		leases []*coordinationv1.Lease
		writes map[float64]string // replica by time
		double int
	}{
		"one that renews": {
			[]*coordinationv1.Lease{held("a_1/x", 0, 0), held("a_1/x", 0, 4)},
			map[float64]string{0.1: "a", 8.9: "a"}, 0,
		},
		"one that goes on after its Lease has run out": {
			[]*coordinationv1.Lease{held("a_1/x", 0, 0)},
			map[float64]string{4.9: "a", 5.1: "a"}, 1,
		},
		"one that has never held it": {
			[]*coordinationv1.Lease{held("a_1/x", 0, 0)},
			map[float64]string{1: "b"}, 1,
		},
		"one that acts between losing the Lease and renewing it": {
			[]*coordinationv1.Lease{held("a_1/x", 0, 0), held("a_1/x", 0, 20)},
			map[float64]string{4: "a", 10: "a", 21: "a"}, 1,
		},
		"two that take turns": {
			[]*coordinationv1.Lease{held("a_1/x", 0, 3), held("b_2/y", 9, 9)},
			map[float64]string{7: "a", 9.5: "b"}, 0,
		},
		"two whose writes interleave": {
			[]*coordinationv1.Lease{held("a_1/x", 0, 3), held("b_2/y", 9, 9)},
			map[float64]string{7: "a", 9.5: "b", 10: "a", 11: "b"}, 1,
		},
		"one that writes after it has given the Lease up": {
			[]*coordinationv1.Lease{held("a_1/x", 0, 3), held("", 4, 4), held("b_2/y", 5, 5)},
			map[float64]string{3.5: "a", 4.5: "a", 6: "b"}, 1,
		},
		"one that has given the Lease up and takes it again": {
			[]*coordinationv1.Lease{held("a_1/x", 0, 3), held("", 4, 4), held("a_2/x", 5, 5)},
			map[float64]string{3.5: "a", 6: "a"}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var kept tenures
			for _, lease := range c.leases {
				kept.saw(lease)
			}
			var writes []write
			for at, replica := range c.writes {
				writes = append(writes, write{replica: replica, at: second(at), what: "patch"})
			}
			if found := doubleWrites(kept.list(), writes); len(found) != c.double {
				t.Errorf("found %d double writes, want %d: %v", len(found), c.double, found)
			}
		})
	}
}

func TestAttemptsAreWritesAndReviewsAndEventsAreNot(t *testing.T) {
	events := []kube.AuditEvent{
		{User: fleet.HubUser, Verb: "patch", Resource: "pods", Code: 409, SourceIPs: []string{"127.18.0.3"}},
		{User: fleet.HubUser, Verb: "create", Resource: "selfsubjectaccessreviews", APIGroup: "authorization.k8s.io", Code: 201},
		{User: fleet.HubUser, Verb: "create", Resource: "pods", Subresource: "eviction", URI: "/x?dryRun=All", Code: 201},
		{User: fleet.HubUser, Verb: "create", Resource: "events", APIGroup: "events.k8s.io", Code: 201},
		{User: "somebody", Verb: "patch", Resource: "pods", Code: 200},
	}
	y := &yard{addresses: []address{{ip: "172.18.0.3", container: "hub-1"}, {ip: "172.18.0.3", container: "hub-3", since: second(1)}}}
	writes := writesIn("prod-eu", events, y.whoHad)
	if len(writes) != 1 || writes[0].replica != "hub-1" {
		t.Errorf("found %+v, want the attempt of hub-1 alone", writes)
	}
	events[0].Received = second(2)
	if now := writesIn("prod-eu", events, y.whoHad); now[0].replica != "hub-3" {
		t.Errorf("the address is %s's, want that of who was given it last", now[0].replica)
	}
}

// shelf is the history of on-demand pods.
func shelf(names ...string) *podHistory {
	h := newPodHistory(func(*corev1.Pod) string { return kube.OnDemand })
	for _, name := range names {
		h.saw(pod(name, true), false, second(0))
	}
	return h
}

func pod(name string, ready bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, UID: types.UID("uid-" + name)}}
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return p
}

func eviction(pod string, at float64) kube.AuditEvent {
	return kube.AuditEvent{
		User: fleet.HubUser, Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: shop, Name: pod, Code: 201,
		Received: second(at), Answered: second(at),
	}
}

func removal(user, pod string, at float64) kube.AuditEvent {
	return kube.AuditEvent{User: user, Verb: "delete", Resource: "pods", Namespace: shop, Name: pod, Code: 200, Received: second(at), Answered: second(at)}
}

// budget is one that has counted pods, and has so many left.
func budget(left int32, counted ...string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: left, DisruptedPods: map[string]metav1.Time{}}}
	for _, name := range counted {
		b.Status.DisruptedPods[name] = metav1.Now()
	}
	return b
}

func TestTheFloorIsBrokenByAnEvictionThatLeavesTooFew(t *testing.T) {
	for name, c := range map[string]struct {
		gone   []string // each a second after the one before, the last by the hub
		events []kube.AuditEvent
		breaks int
	}{
		"more than the floor are there":     {[]string{"a"}, []kube.AuditEvent{eviction("a", 1)}, 0},
		"the second one is one too many":    {[]string{"a", "b"}, []kube.AuditEvent{eviction("a", 1), eviction("b", 2)}, 1},
		"somebody else took one just then":  {[]string{"x", "b"}, []kube.AuditEvent{removal("somebody", "x", 1), eviction("b", 2)}, 0},
		"somebody else had deleted the pod": {[]string{"a", "b"}, []kube.AuditEvent{eviction("a", 1), removal("somebody", "b", 1), eviction("b", 2)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := shelf("a", "b", "x", "y")
			for i, name := range c.gone {
				h.saw(pod(name, true), true, second(float64(i+1)))
				h.disrupted[name] = true
			}
			var v Outcome
			h.judgePods("prod-eu", c.events, &v)
			if len(v.FloorBreaks) != c.breaks || len(v.BudgetBreaks) != 0 {
				t.Errorf("found %v and %v, want %d breaks of the floor", v.FloorBreaks, v.BudgetBreaks, c.breaks)
			}
		})
	}
}

func TestABudgetIsBrokenByWhatItHasNotCounted(t *testing.T) {
	for name, c := range map[string]struct {
		budgets []*policyv1.PodDisruptionBudget
		events  []kube.AuditEvent
		says    string
	}{
		"counted":                   {[]*policyv1.PodDisruptionBudget{budget(1), budget(0, "a")}, []kube.AuditEvent{eviction("a", 2)}, ""},
		"not counted":               {[]*policyv1.PodDisruptionBudget{budget(1)}, []kube.AuditEvent{eviction("a", 2)}, "knows nothing of it"},
		"counted with nothing left": {[]*policyv1.PodDisruptionBudget{budget(0), budget(-1, "a")}, []kube.AuditEvent{eviction("a", 2)}, "nothing left"},
		"deleted by the hub":        {nil, []kube.AuditEvent{removal(fleet.HubUser, "a", 2)}, "delete"},
		"deleted by somebody":       {nil, []kube.AuditEvent{removal("somebody", "a", 2)}, ""},
		"not ready by then":         {nil, []kube.AuditEvent{eviction("new", 2)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := shelf("a", "b", "c", "d", "e")
			h.saw(pod("new", false), false, second(1))
			for i, budget := range c.budgets {
				h.budgeted(budget, i == 0)
			}
			var v Outcome
			h.judgePods("prod-eu", c.events, &v)
			said := strings.Join(v.BudgetBreaks, "\n")
			if (c.says == "") != (said == "") || !strings.Contains(said, c.says) {
				t.Errorf("found %q, want %q", said, c.says)
			}
			if (c.says == "") != (v.Err() == nil) {
				t.Errorf("the outcome is %v", v.Err())
			}
		})
	}
}

func TestWhatHappenedWhileAWatchWasLostIsNotJudged(t *testing.T) {
	h := shelf("a", "b", "c", "d", "e")
	h.missed(second(1), second(3))
	var v Outcome
	h.judgePods("prod-eu", []kube.AuditEvent{eviction("a", 2), eviction("b", 60)}, &v)
	if len(v.BudgetBreaks) != 1 || !strings.Contains(v.BudgetBreaks[0], " b was evicted") {
		t.Errorf("found %v, want b alone", v.BudgetBreaks)
	}
}

func TestAnEvictionNamesItsPodByTheUID(t *testing.T) {
	// line is one of an audit log, with a request's body if it has one.
	line := func(user, resource, body string, code int) string {
		if body != "" {
			body = `"requestObject":` + body + `,`
		}
		return fmt.Sprintf(`{"stage":"ResponseComplete","verb":"create","user":{"username":%q},"objectRef":%s,%s"responseStatus":{"code":%d},`+
			`"requestReceivedTimestamp":"2026-11-21T12:00:01.000000Z"}`+"\n", user, resource, body, code)
	}
	const (
		ofA       = `{"resource":"pods","subresource":"eviction","namespace":"shop","name":"a"}`
		ofUnknown = `{"resource":"pods","subresource":"eviction","namespace":"shop","name":"unknown"}`
		creation  = `{"resource":"pods","namespace":"shop","name":"a"}`
		byUID     = `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"a"},"deleteOptions":{"preconditions":{"uid":"uid-a","resourceVersion":"7"}}}`
		byVersion = `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"a"},"deleteOptions":{"preconditions":{"resourceVersion":"7"}}}`
		byName    = `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"a"}}`
		other     = `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"a"},"deleteOptions":{"preconditions":{"uid":"uid-b"}}}`
	)
	for name, c := range map[string]struct {
		log   string
		named int
		says  string
	}{
		"by UID":                             {line(fleet.HubUser, ofA, byUID, 201), 1, ""},
		"by UID, and refused":                {line(fleet.HubUser, ofA, byUID, 429), 1, ""},
		"by UID, of a pod that was not seen": {line(fleet.HubUser, ofUnknown, other, 201), 1, ""},
		"by name":                            {line(fleet.HubUser, ofA, byName, 201), 0, "prod-eu: a was to be evicted at 12:00:01.000 without its UID"},
		"by name, and refused":               {line(fleet.HubUser, ofA, byName, 429), 0, "without its UID"},
		"by version":                         {line(fleet.HubUser, ofA, byVersion, 201), 0, "without its UID"},
		"as another pod":                     {line(fleet.HubUser, ofA, other, 409), 0, "as uid-b, and is uid-a"},
		"granted without a body in the log":  {line(fleet.HubUser, ofA, "", 201), 0, "without its UID"},
		"refused unread":                     {line(fleet.HubUser, ofA, "", 403), 0, ""},
		"by name, by somebody else":          {line("somebody", ofA, byName, 201), 0, ""},
		"no eviction":                        {line(fleet.HubUser, creation, byName, 201), 0, ""},
		"a line that is not complete":        {line(fleet.HubUser, ofA, byUID, 201) + line(fleet.HubUser, ofA, byName, 201)[:40], 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked, err := evictionsIn([]byte(c.log))
			if err != nil {
				t.Fatal(err)
			}
			var v Outcome
			shelf("a", "b").judgeNames("prod-eu", asked, &v)
			said := strings.Join(v.Unnamed, "\n")
			if (c.says == "") != (said == "") || !strings.Contains(said, c.says) || v.Named != c.named {
				t.Errorf("found %q and %d that name the pod, want %q and %d", said, v.Named, c.says, c.named)
			}
			if (c.says == "") != (v.Err() == nil) {
				t.Errorf("the outcome is %v", v.Err())
			}
		})
	}
}
