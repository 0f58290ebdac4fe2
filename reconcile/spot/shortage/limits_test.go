package shortage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// long are requirements of about so many bytes of text, which no others are easier than.
func long(of string, n, bytes int) capacity.Requirements {
	return cpu(100, fmt.Sprintf("select:%s%04d=%s", of, n, strings.Repeat("a", bytes)))
}

// checkSizes fails unless what is counted is what stands.
func checkSizes(t *testing.T, d *Tracker) {
	t.Helper()
	want, bytes := map[string]size{}, 0
	for _, v := range d.decisions {
		s := want[v.of]
		want[v.of] = size{s.decisions + 1, s.bytes + len(v.text)}
		bytes += len(v.text)
	}
	if fmt.Sprint(want) != fmt.Sprint(d.sizes) || bytes != d.bytes {
		t.Errorf("%v with %d bytes are counted, and %v with %d stand", d.sizes, d.bytes, want, bytes)
	}
	if bytes > maxDecisionBytes {
		t.Errorf("%d bytes stand", bytes)
	}
}

// Templates that leave spot out are as many and as long as a tenant likes.
func TestATenantsExclusionsLeaveRoomForThoseOfOthers(t *testing.T) {
	for name, c := range map[string]struct{ templates, bytes int }{"long ones": {140, 60 << 10}, "short ones": {3 * maxOwn, 10}} {
		w := newTrackerWorld()
		for n := range c.templates {
			w.Exclude(long("tenant", n, c.bytes), "tenant", true, epoch)
		}
		if s := w.sizes["tenant"]; s.decisions == 0 || s.decisions > maxOwn || s.bytes > maxOwnBytes {
			t.Errorf("%s: %+v of one namespace", name, s)
		}
		w.Exclude(long("shop", 1, 10), testNamespace, true, epoch)
		if _, dry := w.Dry(long("shop", 1, 10), testNamespace); !dry {
			t.Errorf("%s: there is no room for those of others", name)
		}
		w.Exclude(long("tenant", 0, c.bytes), "tenant", false, epoch)
		checkSizes(t, w.Tracker)
	}
}

// Pods of two namespaces that show the same shortages are those of one tenant, perhaps.
func TestDecisionsThatTwoNamespacesShowCountForOne(t *testing.T) {
	w := newTrackerWorld()
	for n := range 4 * maxOwn {
		for _, namespace := range []string{"a", "b"} {
			w.Observe(inNamespace(namespace, pendingPod(fmt.Sprint(n), long("x", n, 10), epoch)), epoch)
		}
	}
	w.step(epoch.Add(time.Minute))
	if n := len(w.Decisions()); n == 0 || n > 2*maxOwn {
		t.Errorf("%d decisions stand", n)
	}
	checkSizes(t, w.Tracker)
}

// Pods that are easy to place show the shortages of a tenant's that are harder, which must not use up the room of their namespace.
func TestDecisionsForOthersUseUpNoRoom(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("easy", cpu(1), epoch), epoch)
	for n := range 2 * maxOwn {
		w.Observe(inNamespace("tenant", pendingPod(fmt.Sprint(n), long("x", n, 10), epoch)), epoch)
	}
	for range 2 { // the easy one shows what was decided after it was looked at
		w.step(epoch.Add(time.Minute))
	}
	w.Observe(pendingPod("another", capacity.Requirements{Memory: 5}, epoch), epoch)
	w.step(epoch.Add(time.Minute))
	if _, dry := w.Dry(capacity.Requirements{Memory: 5}, testNamespace); !dry {
		t.Error("there is no room for another decision")
	}
	checkSizes(t, w.Tracker)
}

// Tenants with many namespaces fill the room that there is for all.
func TestWhereThereIsNoRoomTheNamespaceWithTheMostLosesADecision(t *testing.T) {
	w := newTrackerWorld()
	const each = maxOwnBytes/maxOwn - 100
	now := epoch.Add(time.Minute)
	for namespace := range maxDecisionBytes/maxOwnBytes + 2 {
		for n := range maxOwn {
			p := pendingPod(fmt.Sprint(n), long(fmt.Sprintf("n%02d-", namespace), n, each), epoch)
			w.Observe(inNamespace(fmt.Sprint("tenant-", namespace), p), epoch)
		}
	}
	w.Judge(now)
	stood := len(w.decisions)
	if stood < maxDecisionBytes/(each+100) {
		t.Fatalf("%d decisions stand", stood)
	}
	checkSizes(t, w.Tracker)
	w.Observe(pendingPod("p", long("shop", 1, each), epoch), epoch)
	w.Judge(now)
	if _, dry := w.Dry(long("shop", 1, each), testNamespace); !dry || len(w.decisions) < stood-1 {
		t.Errorf("the shortage of another namespace is found: %t, and %d decisions stand of %d", dry, len(w.decisions), stood)
	}
	before := fmt.Sprint(w.sizes)
	w.Observe(inNamespace(w.largest(), pendingPod("more", long("more", 1, each), epoch)), epoch)
	if w.Judge(now); fmt.Sprint(w.sizes) != before {
		t.Error("the namespace with the most takes room from others")
	}
	checkSizes(t, w.Tracker)
	w.restart(now)
	checkSizes(t, w.Tracker)
}

// Each reconcile of a workload with pods that wait judges all of the member.
func TestPodsForWhichThereIsNoRoomAreNotWrittenAsTextAgainAndAgain(t *testing.T) {
	const pods = 10 * maxOwn
	w := newTrackerWorld()
	for n := range pods {
		w.Observe(pendingPod(fmt.Sprint(n), long("x", n, 1000), epoch), epoch)
	}
	now := epoch.Add(time.Minute)
	w.Judge(now)
	if allocs := testing.AllocsPerRun(5, func() { w.Judge(now) }); len(w.decisions) != maxOwn || allocs > 2*pods {
		t.Errorf("%.0f allocations for %d pods, and %d decisions stand", allocs, pods, len(w.decisions))
	}
}
