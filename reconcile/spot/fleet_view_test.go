package spot

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

func TestHowLongPodsTakeIsReadOffThoseThatAreReady(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pod := func(took time.Duration) plan.Pod {
		return plan.Pod{Created: created, UnreadySince: created.Add(took), Bound: true, Ready: true}
	}
	starting, onNewNode, onOldNode := pod(time.Minute), pod(10*time.Minute), pod(5*time.Minute)
	starting.Ready = false
	onNewNode.NodeJoined, onOldNode.NodeJoined = created.Add(6*time.Minute), created.Add(-time.Hour)
	for name, test := range map[string]struct {
		pods []plan.Pod
		want time.Duration
	}{
		"none":                                  {nil, 0},
		"none is ready":                         {[]plan.Pod{starting}, 0},
		"one waited for its node":               {[]plan.Pod{onNewNode}, 4 * time.Minute},
		"one had a node":                        {[]plan.Pod{onOldNode}, 5 * time.Minute},
		"one became ready again":                {[]plan.Pod{pod(2 * time.Minute), pod(3 * time.Minute), pod(20 * time.Minute)}, 3 * time.Minute},
		"all became ready again, after an hour": {[]plan.Pod{pod(time.Hour), pod(time.Hour)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ViewOf(&plan.Observed{Pods: test.pods}).PodStart; got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
