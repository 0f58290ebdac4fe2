package fleet

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

func TestATollCountsWhatTheHubTookAndNotWhatOthersTookJustBefore(t *testing.T) {
	begun := time.Now()
	left := func(after time.Duration, pod, capacity string, ready bool, remaining int) Moment {
		return Moment{At: begun.Add(after), Pod: pod, Left: true, Capacity: capacity, WasReady: ready, ReadyOnDemand: remaining}
	}
	evictions := []kube.AuditEvent{
		{Name: "twice", User: HubUser, Answered: begun.Add(2)}, {Name: "twice", User: "karpenter", Answered: begun.Add(1)},
		{Name: "a", User: HubUser}, {Name: "b", User: HubUser}, {Name: "c", User: HubUser}, {Name: "spot", User: HubUser},
	}
	moments := []Moment{
		{At: begun, Pod: "new", ReadyOnDemand: 5},
		left(time.Second, "a", kube.OnDemand, true, 4),
		left(2*time.Second, "twice", kube.OnDemand, true, 3),
		left(3*time.Second, "b", kube.OnDemand, true, 2), // of a floor of 3, but for the one that Karpenter has just taken
		left(9*time.Second, "c", kube.OnDemand, true, 1), // by which time that was to be seen
		left(9*time.Second, "spot", kube.Spot, false, 1),
	}
	toll := judge(moments, firstBy(evictions), 3)
	want := &Toll{
		ByHub: 4, ReadyByHub: 3, Lowest: 1,
		Breaks: []string{"after pod c was evicted at " + begun.Add(9*time.Second).UTC().Format("15:04:05.000") + ", 1 on-demand replicas were ready of a floor of 3"},
	}
	if !reflect.DeepEqual(toll, want) {
		t.Errorf("got %+v, want %+v", toll, want)
	}
}

func TestATollNamesWhoElseEvictedAndWhomABudgetRefused(t *testing.T) {
	refused := kube.AuditEvent{Name: "c", User: "karpenter", Code: http.StatusTooManyRequests}
	toll := &Toll{}
	toll.countOthers(map[string]string{"a": HubUser, "b": "karpenter", "d": "karpenter"},
		[]kube.AuditEvent{refused, refused, {Name: "e", User: HubUser, Code: http.StatusTooManyRequests}, {Name: "b", User: "karpenter", Code: http.StatusCreated}})
	if want := map[string]int{"karpenter": 2}; !reflect.DeepEqual(toll.ByOthers, want) || toll.RefusedToOthers != 2 {
		t.Errorf("got %+v, want %v and two refusals", toll, want)
	}
}

func TestScaledTimesAreAllThatPlacementHas(t *testing.T) {
	got := Scaled(5)
	for _, key := range []string{"controller.resyncPeriod", "spot.moveCooldown", "spot.pendingTimeout", "spot.probe.firstAfter", "spot.probe.timeout"} {
		if _, set := got[key]; !set {
			t.Errorf("%s is not scaled: %v", key, got)
		}
	}
	if got["spot.moveCooldown"] != "2s" {
		t.Errorf("spot.moveCooldown is %v, want a fifth of 10s", got["spot.moveCooldown"])
	}
}
