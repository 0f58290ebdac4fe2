package nodes

import (
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
