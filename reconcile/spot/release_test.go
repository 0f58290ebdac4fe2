package spot

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestADeadlineEndsAPodAtItsTimeAndIsNeverRaised(t *testing.T) {
	until := spottest.Epoch.Add(time.Hour)
	started := func(at time.Time) *metav1.Time { return new(metav1.NewTime(at)) }
	for name, c := range map[string]struct {
		start   *metav1.Time
		has     *int64
		until   time.Time
		seconds int64
		keeps   bool
	}{
		"it has run for an hour":      {start: started(spottest.Epoch.Add(-time.Hour)), until: until, seconds: 7200},
		"its start is not known":      {until: until, seconds: 3 * 3600},
		"not a moment too early":      {start: started(spottest.Epoch), until: spottest.Epoch.Add(1500 * time.Millisecond), seconds: 2},
		"its time is over":            {start: started(spottest.Epoch), until: spottest.Epoch.Add(-time.Hour), seconds: 1},
		"longer than the field holds": {start: started(spottest.Epoch.AddDate(-90, 0, 0)), until: until, seconds: 1<<31 - 1},
		"it has an earlier end":       {start: started(spottest.Epoch), has: new(int64(60)), until: until, keeps: true},
		"it has a later end":          {start: started(spottest.Epoch), has: new(int64(86400)), until: until, seconds: 3600},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(spottest.Epoch.Add(-2 * time.Hour))},
			Spec: corev1.PodSpec{ActiveDeadlineSeconds: c.has}, Status: corev1.PodStatus{StartTime: c.start}}
		if seconds, ok := plan.ActiveDeadline(pod, c.until); ok == c.keeps || (ok && seconds != c.seconds) {
			t.Errorf("%s: %d seconds, written %v", name, seconds, ok)
		}
	}
}

// A released pod has no owner: if the hub never comes back, Kubernetes ends it.
func TestAReleasedPodGetsATimeToEndWithoutUsInTheSameWrite(t *testing.T) {
	pods := plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true})
	var objects []client.Object
	now := time.Now().Truncate(time.Second)
	for i := range pods {
		pods[i].Hash = "abc"
		pod := running(pods[i].Name, "0", "node-spot")
		pod.UID, pod.Status.StartTime = pods[i].UID, new(metav1.NewTime(now.Add(-time.Hour)))
		objects = append(objects, pod)
	}
	var patches []map[string]any
	c := indexed(interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
		data, err := patch.Data(obj)
		if err != nil {
			return err
		}
		var content map[string]any
		err = json.Unmarshal(data, &content)
		patches = append(patches, content)
		return err
	}}, objects...)
	s := newShell(t, nil, false)
	settings := plantest.DefaultSettings
	settings.Strategy = policy.StrategyRelease
	decided := plan.Plan(plantest.ObservedOf(pods, 10), spottest.PolicyOf(0, 0), settings, now)
	decided.Assignments = nil
	if _, err := s.act(t.Context(), s.follower.directory, s.acting(c, pods), &decided, now); err != nil {
		t.Fatal(err)
	}
	if len(patches) != 1 {
		t.Fatalf("%d patches", len(patches))
	}
	metadata, spec := patches[0]["metadata"].(map[string]any), patches[0]["spec"].(map[string]any)
	until := decided.Releases[0].Released.Until
	want := float64((time.Hour + until.Sub(now)) / time.Second)
	if spec["activeDeadlineSeconds"] != want || metadata["uid"] == nil || metadata["labels"] == nil {
		t.Errorf("patch %v, want a deadline of %v seconds", patches[0], want)
	}
	r, ok := plan.ParseReleased(metadata["annotations"].(map[string]any)[spottest.DefaultKeys.Released()].(string))
	if !ok || !r.Until.Equal(until) {
		t.Errorf("the annotation says %+v", r)
	}
}

// Without the pod it is not known whether it would ever end, and a member's policy refuses that, which would count for all pods of the owner.
func TestAPodThatTheCacheHasNoMoreIsNotReleased(t *testing.T) {
	pods, now := plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true}), time.Now()
	for i := range pods {
		pods[i].Hash = "abc"
	}
	namesakes := slices.Clone(pods)
	for i := range namesakes {
		namesakes[i].UID += "-another"
	}
	for name, cached := range map[string][]plan.Pod{"it is gone": nil, "another has its name": namesakes} {
		settings := plantest.DefaultSettings
		settings.Strategy = policy.StrategyRelease
		decided := plan.Plan(plantest.ObservedOf(pods, 10), spottest.PolicyOf(0, 0), settings, now)
		if len(decided.Releases) == 0 {
			t.Fatal("nothing is released")
		}
		w, s := newWriting(deniedByPolicy, succeed, cached...), newShell(t, nil, false)
		decided.Assignments = nil
		_, err := s.act(t.Context(), s.follower.directory, s.acting(w, pods), &decided, now)
		denied := s.follower.directory.releaseDenied(plantest.ObservedOf(pods, 10).Owners, now.Add(time.Second))
		if err != nil || denied != "" || w.patches.Load() != 0 {
			t.Errorf("%s: %d patches, error %v, no more releases because %q", name, w.patches.Load(), err, denied)
		}
	}
}
