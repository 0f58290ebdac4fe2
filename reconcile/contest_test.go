package reconcile

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

func TestAFieldThatSomebodyElseAlsoSetsIsSetRightLessAndLessOften(t *testing.T) {
	applyPlant(t, func(t *testing.T, a *applying) {
		always := func(req Request[*gadget]) error {
			_, err := req.Apply(t.Context(), settings(map[string]string{"a": "ours"}))
			return err
		}
		a.always.Store(&always)
		change(a.plant, "one", func(g *gadget) {
			g.Generation++
			g.Annotations = map[string]string{"x": "1"}
		})
		fight := func(within time.Duration) {
			for began := time.Now(); time.Since(began) < within; {
				time.Sleep(100 * time.Millisecond) // the other controller's way there and back
				if cm := mustRead[*corev1.ConfigMap](a.plant, "settings"); cm.Data["a"] == "ours" {
					change(a.plant, "settings", func(cm *corev1.ConfigMap) { cm.Data["a"] = "theirs" })
				}
			}
		}
		fight(time.Minute)
		if n := a.applies.Load(); n < 4 || n > 12 {
			t.Errorf("%d applies in a minute", n)
		}
		ready := meta.FindStatusCondition(mustRead[*gadget](a.plant, "one").Status.Conditions, ConditionReady)
		if ready.Status != metav1.ConditionFalse || ready.Reason != ReasonContested ||
			!strings.Contains(ready.Message, "data.a is set differently again and again by the field manager \"") {
			t.Errorf("Ready is %s, %s: %s", ready.Status, ready.Reason, ready.Message)
		}
		time.Sleep(2 * retry.Most) // the other one has given up
		if cm := mustRead[*corev1.ConfigMap](a.plant, "settings"); cm.Data["a"] != "ours" {
			t.Errorf("data %v", cm.Data)
		}
		if ready := meta.FindStatusCondition(mustRead[*gadget](a.plant, "one").Status.Conditions, ConditionReady); ready.Status != metav1.ConditionTrue {
			t.Errorf("Ready is %s, %s: %s", ready.Status, ready.Reason, ready.Message)
		}
	})
}

func TestLeavingAFieldKeepsWhatItsNewManagerJustWrote(t *testing.T) {
	applyPlant(t, func(t *testing.T, a *applying) {
		a.run(t, settings(map[string]string{"replicas": "1", "b": "1"}))
		autoscaler := func() {
			change(a.plant, "settings", func(cm *corev1.ConfigMap) { cm.Data["replicas"] = "7" })
		}
		a.leaving.Store(&autoscaler)
		got := a.run(t, settings(map[string]string{"b": "2"}), Leave("data.replicas"))
		if cm := mustRead[*corev1.ConfigMap](a.plant, "settings"); cm.Data["replicas"] != "7" || cm.Data["b"] != "2" || a.err != nil {
			t.Errorf("%s, %v: the autoscaler wrote 7, and the data is %v", got, a.err, cm.Data)
		}
	})
}
