package nodes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheNodeTableKnowsWhichNodesGoAndWhichHaveGone(t *testing.T) {
	var known Interruptions
	table, start := NewTable(), time.Now()
	labels := map[string]string{"karpenter.sh/capacity-type": "spot"}
	node := func(taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}, Spec: corev1.NodeSpec{Taints: taints}}
	}
	interrupted := node(corev1.Taint{Key: "karpenter.sh/disrupted"})

	if interruption := table.InterruptionOf("n"); interruption != nil {
		t.Errorf("a node that was never seen is interrupted: %+v", interruption)
	}
	table.Set(node(), &known, start)
	if interruption := table.InterruptionOf("n"); interruption != nil {
		t.Errorf("a node that stays is interrupted: %+v", interruption)
	}
	table.Set(interrupted, &known, start)
	first := table.InterruptionOf("n")
	table.Set(interrupted, &known, start.Add(time.Minute))
	if first == nil || table.InterruptionOf("n") != first {
		t.Errorf("an interruption that stands is reported again: %+v, then %+v", first, table.InterruptionOf("n"))
	}
	table.Set(node(), &known, start)
	if interruption := table.InterruptionOf("n"); interruption != nil {
		t.Errorf("the notice was taken back, and the node is interrupted: %+v", interruption)
	}

	table.Remove("n", start)
	interruption := table.InterruptionOf("n")
	if interruption == nil || !interruption.Gone || interruption.Notice != noticeGone {
		t.Errorf("a node that has gone: %+v", interruption)
	}
	if got, ok := table.LabelsOf("n"); !ok || got["karpenter.sh/capacity-type"] != "spot" {
		t.Errorf("the capacity labels of a node that has gone: %v", got)
	}
	table.Set(node(), &known, start)
	if interruption := table.InterruptionOf("n"); interruption != nil {
		t.Errorf("a node that came back is interrupted: %+v", interruption)
	}

	table.Remove("n", start)
	table.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, &known, start)
	table.Remove("other", start.Add(2*goneFor))
	if _, remembered := table.LabelsOf("n"); remembered {
		t.Error("a node that went long ago is still remembered")
	}
}

// No budget counts the nodes that have gone.
func TestNodesThatComeAndGoWithoutEndTakeLittle(t *testing.T) {
	var known Interruptions
	table, now := NewTable(), time.Now()
	comeAndGo := func(name string, labels map[string]string) {
		table.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, &known, now)
		table.Remove(name, now)
		now = now.Add(time.Millisecond)
	}
	large := map[string]string{"large": strings.Repeat("a", maxGone/8)}
	for i := range 100 {
		comeAndGo(fmt.Sprint("n", i), large)
	}
	if _, first := table.LabelsOf("n0"); first || table.bytes > maxGone || len(table.gone) != len(table.left) {
		t.Errorf("the first of many large nodes is remembered: %t; they take %d bytes, and are %d, %d in order", first, table.bytes, len(table.gone), len(table.left))
	}
	if _, last := table.LabelsOf("n99"); !last || len(table.gone) < 5 {
		t.Errorf("%d are remembered, the last among them: %t", len(table.gone), last)
	}
	comeAndGo("larger", map[string]string{"large": strings.Repeat("a", 2*maxGone)})
	if len(table.gone) != 0 || len(table.left) != 0 || table.bytes != 0 {
		t.Errorf("a node that is larger than all may be: %d are remembered with %d bytes", len(table.gone), table.bytes)
	}
	for range 10 * smallestLeft {
		comeAndGo("the same", nil)
	}
	if len(table.gone) != 1 || len(table.left) > 2*len(table.gone)+smallestLeft {
		t.Errorf("one node that comes and goes is remembered %d times", len(table.left))
	}
	table.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "the same"}}, &known, now)
	if table.bytes != 0 {
		t.Errorf("nothing has gone, which takes %d bytes", table.bytes)
	}
}
