package spot

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/shapes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// dryWorkload is a workload of one owner, on spot, whose first pod has been unschedulable for so long.
func dryWorkload(d *directory, waited time.Duration, now time.Time) (policy.WorkloadKey, plan.Observed) {
	o := d.ensureOwner(ownerKey{"shop", "set-web-1"}, "ReplicaSet")
	o.shape = shapes.Kept{Text: capacity.Requirements{CPU: 500}.String()}
	key := policy.WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
	return key, plan.Observed{Owners: []plan.Owner{{UID: "set-web-1"}}, Pods: []plan.Pod{
		{UID: "1", Owner: "set-web-1", Capacity: capacity.Spot, UnschedulableSince: now.Add(-waited)},
		{UID: "2", Owner: "set-web-1", Capacity: capacity.OnDemand, Bound: true, Ready: true},
	}}
}

func TestAPodThatWaitsTooLongMakesSpotDryForItsOwner(t *testing.T) {
	now, settings := time.Now(), plan.Settings{PendingTimeout: time.Minute}
	d := newDirectory(policy.Keys{Prefix: policy.DefaultPrefix}, policy.Defaults{}, nil)
	key, early := dryWorkload(d, 20*time.Second, now)
	overdue := d.observeDrought(key, &early, settings, now)
	if !overdue.Equal(now.Add(40*time.Second)) || !early.Owners[0].DrySince.IsZero() {
		t.Errorf("looked at again at %s, dry since %s", overdue, early.Owners[0].DrySince)
	}
	if got := d.droughts.AffectedOf(KindDeployment); len(got) != 1 {
		t.Errorf("%v look again when spot turns out to be dry", got)
	}

	key, late := dryWorkload(d, 2*time.Minute, now)
	if overdue := d.observeDrought(key, &late, settings, now); !overdue.IsZero() || late.Owners[0].DrySince.IsZero() {
		t.Errorf("looked at again at %s, dry since %s", overdue, late.Owners[0].DrySince)
	}
	if plan := d.droughts.Step(now); len(plan.Create) != 1 {
		t.Errorf("%d probes are made", len(plan.Create))
	}
	if since, _ := d.drySince(d.owner(ownerKey{"shop", "set-web-1"})); since.IsZero() {
		t.Error("an admission does not hear of it")
	}
}

func TestAWorkloadIsToldWhenNoProbeCanBeMade(t *testing.T) {
	dir := newDirectory(policy.Keys{Prefix: policy.DefaultPrefix}, policy.Defaults{}, nil)
	d := dir.droughts
	dry, wet := plan.Observed{Owners: []plan.Owner{{DrySince: time.Now()}}}, plan.Observed{Owners: []plan.Owner{{}}}
	if !d.SetProblem("create pods: forbidden") || d.SetProblem("create pods: forbidden") {
		t.Error("a problem is news once")
	}
	for o, want := range map[*plan.Observed]int{&dry: 1, &wet: 0} {
		var plan plan.Result
		if dir.noteProblems(o, &plan); len(plan.Notes) != want {
			t.Errorf("got %v, want %d notes", plan.Notes, want)
		}
	}
	d.SetProblem("")
	var plan plan.Result
	if dir.noteProblems(&dry, &plan); len(plan.Notes) != 0 {
		t.Errorf("the problem is over, and %v is reported", plan.Notes)
	}
}

func TestNoDroughtIsFoundWhereNothingMayBeWritten(t *testing.T) {
	now := time.Now()
	d := newDirectory(policy.Keys{Prefix: policy.DefaultPrefix}, policy.Defaults{}, nil)
	key, observed := dryWorkload(d, time.Hour, now)
	d.observeDrought(key, &observed, plan.Settings{PendingTimeout: time.Minute, ReadOnly: true}, now)
	if !observed.Owners[0].DrySince.IsZero() || d.droughts.Decisions(capacity.Spot) != 0 {
		t.Error("a decision would need a probe")
	}
}

func TestADecisionEndsWhenNobodyHasSuchPodsAnyMore(t *testing.T) {
	now, settings := time.Now(), plan.Settings{PendingTimeout: time.Minute}
	d := newDirectory(policy.Keys{Prefix: policy.DefaultPrefix}, policy.Defaults{}, nil)
	key, observed := dryWorkload(d, time.Hour, now)
	d.observeDrought(key, &observed, settings, now)
	if d.forgetDroughts(now); d.droughts.Decisions(capacity.Spot) != 1 {
		t.Fatal("there is no decision")
	}
	d.removeOwner(ownerKey{"shop", "set-web-1"})
	d.needs = shapes.Search{} // which rests for as long as ten searches take
	if d.forgetDroughts(now); d.droughts.Decisions(capacity.Spot) != 0 {
		t.Error("the decision stands for nobody")
	}
}

// After a start, ReplicaSets may come to the cache later than pods, and a bound pod does not say what it asks for.
func TestAnEarlierDecisionStandsUntilTheOwnersOfPodsAreKnown(t *testing.T) {
	s, now := newShell(t, nil, false), time.Now()
	dir := s.follower.directory
	dir.capacity, dir.probes = s.options.Capacity, s.options.Probes.Namespace
	probe := shortage.Probe{Decision: shortage.Decision{Requirements: capacity.Requirements{CPU: 500}, Capacity: capacity.Spot, Namespaces: []string{"shop"},
		Since: now.Add(-time.Minute), NextProbe: now.Add(time.Hour)}, Gated: true}
	probe.Name = shortage.ProbeName(probe.Requirements.String(), &probe.Decision)
	bound := stored("web-1-a", Placement{Reservation: plan.Reservation{Capacity: capacity.OnDemand}})
	bound.Spec.NodeName = "n"
	s.cache(namespace("true", nil), deployment(1, "true", mixed("100")), bound, s.probePod(&probe, dir.probes, spottest.ByConfiguration))
	forget := func(want int, owner string) {
		t.Helper()
		dir.needs = shapes.Search{} // which rests for as long as ten searches take
		if dir.forgetDroughts(now); dir.droughts.Decisions(capacity.Spot) != want {
			t.Errorf("%d decisions stand, want %d, with an owner that %s", dir.droughts.Decisions(capacity.Spot), want, owner)
		}
	}
	forget(1, "is not known")
	asking := func(cpu string) *appsv1.ReplicaSet {
		set := replicaSet(1, 1)
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
		keepTemplate(set, &set.Spec.Template, &set.Spec.Template, s.options.Capacity)
		return set
	}
	s.cache(asking("500m"))
	forget(1, "asks for as much")
	s.cache(asking("100m"))
	forget(0, "asks for less")
}

func TestAnOwnersShapeIsThatOfItsNewestPodElseOfItsTemplate(t *testing.T) {
	d := newDirectory(policy.Keys{Prefix: policy.DefaultPrefix}, policy.Defaults{}, nil)
	o := d.ensureOwner(ownerKey{"shop", "set-web-1"}, "ReplicaSet")
	if got, known := d.shape(o); known {
		t.Errorf("nothing is known: %v", got)
	}
	o.template = &template{shape: capacity.Requirements{CPU: 100}.String()}
	if got, _ := d.shape(o); got.CPU != 100 {
		t.Errorf("by the template: %v", got)
	}
	o.shape.Text = capacity.Requirements{CPU: 250}.String() // a member may add to what the template asks for
	if got, _ := d.shape(o); got.CPU != 250 {
		t.Errorf("by a pod: %v", got)
	}
}

// shapedPod is a pod of the shop as the cache has it, with its shape if no node has it.
func shapedPod(uid, text, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: uid, UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: node}}
	if node == "" {
		pod.Annotations = map[string]string{annotationShape: text}
	}
	return pod
}

func TestABoundPodShowsWhatItAskedForIfItsOwnerIsKnownToAskForIt(t *testing.T) {
	text := func(cpu int64) string { return capacity.Requirements{CPU: cpu}.String() }
	d := newDirectory(policy.Keys{Prefix: policy.DefaultPrefix}, policy.Defaults{}, nil)
	key := ownerKey{"shop", "set-web-1"}
	o := d.ensureOwner(key, "")
	learn := func(uid string, cpu int64, node string, alive bool) {
		o.mu.Lock()
		defer o.mu.Unlock()
		d.learnShape(o, shapedPod(uid, text(cpu), node), d.shapeText(key), alive, true)
	}
	shows := func(uid types.UID, want int64) {
		t.Helper()
		if got, known := d.shownBy(o, uid); known != (want > 0) || got.CPU != want {
			t.Errorf("pod %s shows %v, %t, want %d", uid, got, known, want)
		}
	}
	learn("a", 100, "", true)
	learn("a", 100, "n", true)
	shows("a", 100)
	shows("b", 0)
	// A member adds to what the template asks for.
	d.setOwner(key, ownerFacts{kind: kindReplicaSet, template: templateOf(shapedPod("", text(50), ""), nil)}, false, time.Now())
	shows("a", 100)
	learn("b", 50, "", true)
	learn("b", 50, "n", true)
	shows("b", 50)
	shows("a", 0)
	learn("c", 200, "", true)
	shows("c", 200)
	// It asks for that itself: the text is on the cached template.
	d.setOwner(key, ownerFacts{kind: kindReplicaSet, template: templateOf(shapedPod("", text(200), ""), nil)}, false, time.Now())
	if o.shape.Text != "" {
		t.Errorf("%s is kept beside the template", o.shape.Text)
	}
	shows("c", 200)
	learn("c", 200, "n", false)
	if shows("c", 0); len(o.shown) != 2 {
		t.Errorf("of %d pods it is known what they asked for, want those that live", len(o.shown))
	}
}

// Pods name any owners, and no budget counts what is known of them once they are bound.
func TestWhatBoundPodsAskedForTakesLittle(t *testing.T) {
	const pods, long = 500, capacity.MaxText - 1000
	d := newDirectory(policy.Keys{Prefix: policy.DefaultPrefix}, policy.Defaults{}, nil)
	before := inUse()
	for _, owners := range []int{1, pods} {
		for n := range pods {
			key := ownerKey{fmt.Sprint("tenant-", n%50), types.UID(fmt.Sprint(owners, "-", n%owners))}
			o, uid := d.ensureOwner(key, ""), fmt.Sprint(owners, "-pod-", n)
			text := capacity.Requirements{Constraints: []string{fmt.Sprint("select:", n, strings.Repeat("a", long))}}.String()
			o.mu.Lock()
			d.learnShape(o, shapedPod(uid, text, ""), "", true, true)
			d.learnShape(o, shapedPod(uid, text, "n"), "", true, true)
			o.mu.Unlock()
		}
	}
	if took := inUse() - before; took > 12<<20 {
		t.Errorf("%d pods that are bound take %d MiB", 2*pods, took>>20)
	}
	for _, o := range d.owners {
		d.removeOwner(o.ownerKey)
	}
	o := d.ensureOwner(ownerKey{"tenant-0", "another"}, "")
	if d.keepPodShape(o, strings.Repeat("a", long), ""); o.shape.Text == "" {
		t.Error("owners that are gone use up the room of others")
	}
	runtime.KeepAlive(d)
}
