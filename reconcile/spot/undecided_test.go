package spot

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// slipped is a pod of web-1 without a slot that was created so long ago.
func slipped(name string, ago time.Duration) *corev1.Pod {
	pod := running(name, "", "node-od")
	pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-ago))
	return pod
}

func TestPodsThatCameWithoutADecisionAreCountedOnceAndOthersAreNot(t *testing.T) {
	for name, c := range map[string]struct {
		enabled string        // the label of the workload, at first
		age     time.Duration // of the workload
		read    bool          // only
		want    float64
	}{
		"of a workload that was made a moment ago":   {"true", 2 * time.Second, false, 3},
		"of one that was there before the hub":       {"true", time.Hour, false, 1},
		"of one that was enabled afterwards":         {"false", 2 * time.Second, false, 0},
		"of one of which the hub may only be reader": {"true", 2 * time.Second, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				s := newShell(t, func(o *Options) { o.Registerer, o.Settings.ReadOnly = registry, c.read }, false)
				time.Sleep(2*time.Hour + time.Second/2) // creation times are whole seconds, and this one is not
				s.cache(spotAndOnDemandNodes()...)
				set := counted(3)
				web := deployment(3, c.enabled, mixed("70"))
				web.CreationTimestamp = metav1.NewTime(time.Now().Add(-c.age))
				s.cache(namespace("true", nil), web, set)
				dir := s.follower.directory
				live := []client.Object{slipped("a", time.Second), slipped("b", 0)}
				search := func() {
					t.Helper()
					sub := webOf(set, indexed(interceptor.Funcs{}), indexed(interceptor.Funcs{}, live...))
					for range 3 {
						if _, _, err := s.observeSubject(t.Context(), dir, sub, s.options.Settings); err != nil {
							t.Fatal(err)
						}
						time.Sleep(30 * time.Second) // the least time between two searches
					}
				}
				if c.enabled != "true" { // its pods were there before it was enabled
					time.Sleep(time.Minute)
					s.cache(deployment(3, "true", mixed("70")))
				} else if c.age < time.Hour {
					live = append(live, slipped("c", 0))
				} else {
					time.Sleep(time.Minute)
					live = append(live, slipped("late", 0))
				}
				search()
				if got := spottest.Series(t, registry, "plimsoll_pods_undecided_total")[testMember]; got != c.want {
					t.Errorf("%v pods are counted, want %v", got, c.want)
				}
				if at := s.UndecidedAt(testMember); at.IsZero() != (c.want == 0) {
					t.Errorf("they were last seen at %s", at)
				}
				s.metrics.ForgetMember(testMember)
				if left := spottest.Series(t, registry, "plimsoll_pods_undecided_total"); len(left) != 0 {
					t.Errorf("series of a member that is gone: %v", left)
				}
			})
		})
	}
}
