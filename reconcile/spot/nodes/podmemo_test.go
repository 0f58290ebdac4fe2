package nodes_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Whatever happens to pods and nodes between plans, and whatever plans add, a memo returns what the pods themselves say.
func TestAMemoReturnsWhatItsPodsSay(t *testing.T) {
	labels := spottest.MustLabels(t)
	rapid.Check(t, func(t *rapid.T) {
		var memo nodes.PodMemo
		table, cached, version := nodes.NewTable(), map[string]*corev1.Pod{}, 0
		t.Repeat(map[string]func(*rapid.T){
			"pod": func(t *rapid.T) {
				version++
				pod := drawPod(t, version)
				cached[pod.Name] = pod
			},
			"pod is gone": func(t *rapid.T) { delete(cached, podName(t)) },
			"node": func(t *rapid.T) {
				seen := node(nodeName(t), rapid.SampledFrom([]string{"spot", "on-demand"}).Draw(t, "type"))
				if rapid.Bool().Draw(t, "going") {
					seen.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
				}
				table.Set(seen, &nodes.Interruptions{}, spottest.Epoch)
			},
			"node is gone": func(t *rapid.T) { table.Remove(nodeName(t), spottest.Epoch) },
			"plan": func(t *rapid.T) {
				reader := table.Pods(spottest.DefaultKeys, labels)
				want, pods := map[types.UID]plan.Pod{}, []any{}
				for _, pod := range cached { // in no order, as from an index
					want[pod.UID], pods = reader.Facts(pod), append(pods, pod)
				}
				before := []plan.Pod{{Name: "of another owner"}}
				got := memo.Read(reader, before, pods)
				if len(got) != 1+len(want) || got[0].Name != "of another owner" {
					t.Fatalf("%d pods were read as %d: %+v", len(want), len(got)-1, got)
				}
				for i := range got[1:] {
					read := &got[1+i]
					if !reflect.DeepEqual(*read, want[read.UID]) {
						t.Fatalf("read\n%+v, want\n%+v", *read, want[read.UID])
					}
					delete(want, read.UID)
					complete(t, read)
				}
			},
		})
	})
}

func podName(t *rapid.T) string {
	return fmt.Sprint("web-", rapid.IntRange(0, 6).Draw(t, "pod"))
}

// nodeName is one of three names; the last is of no node at first.
func nodeName(t *rapid.T) string { return fmt.Sprint("node-", rapid.IntRange(0, 2).Draw(t, "node")) }

func drawPod(t *rapid.T, version int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: podName(t), Namespace: "shop", ResourceVersion: fmt.Sprint(version), Annotations: map[string]string{},
		Labels: map[string]string{spottest.DefaultKeys.Slot(): fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "slot"))}}}
	pod.UID = types.UID(fmt.Sprint(pod.Name, "-", rapid.IntRange(0, 1).Draw(t, "made again")))
	switch rapid.IntRange(0, 3).Draw(t, "state") {
	case 0:
		pod.Status.NominatedNodeName = "node-0"
	case 1:
		pod.Spec.NodeSelector = map[string]string{spottest.SteerKey: "spot"}
	default:
		pod.Spec.NodeName = nodeName(t)
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	if rapid.Bool().Draw(t, "cost") {
		pod.Annotations[policy.DeletionCost] = fmt.Sprint(version)
	}
	if rapid.IntRange(0, 4).Draw(t, "tried") == 0 {
		pod.Annotations[spottest.DefaultKeys.Tried()] = spottest.Epoch.Format(time.RFC3339)
	}
	return pod
}

// complete adds what a plan adds to a pod that was read.
func complete(t *rapid.T, p *plan.Pod) {
	switch rapid.IntRange(0, 6).Draw(t, "completed") {
	case 0:
		p.Evicted = true
	case 1:
		p.Released = &plan.Released{Owner: "set"}
	case 2:
		p.NodeComing = true
	case 3:
		p.TriedUntil = spottest.Epoch
	case 4:
		p.Domains, p.Budgets = []int32{1}, []int{0}
	}
}
