package reconcile

import (
	"errors"
	"regexp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// endings are all the ways in which a reconcile can end that are reported in a status.
var endings = map[string]ending{
	"done":    {},
	"requeue": {result: Requeue("not yet")},
	"after":   {result: RequeueAfter(time.Minute, "later")},
	"error":   {err: errors.New("broken")},
	"panic":   {err: errors.New("panic"), outcome: codePanic},
	"timeout": {err: errors.New("late"), outcome: codeTimeout},
	"stalled": {err: TerminalError(errors.New("never"))},
	"pending": {outcome: codePending, result: RequeueAfter(time.Minute, "cleaning")},
	"overdue": {outcome: codePending, result: RequeueAfter(time.Minute, "cleaning"), overdue: "too long"},
	"paused":  {outcome: codePaused},
}

func TestConditionsKeepTheRulesOfKstatus(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var list []metav1.Condition
		for range rapid.IntRange(1, 6).Draw(rt, "reconciles") {
			c := newConditions(list, 1)
			said := map[string]string{}
			for range rapid.IntRange(0, 3).Draw(rt, "words") {
				kind := rapid.SampledFrom([]string{ConditionReady, ConditionReconciling, ConditionStalled, "Mine"}).Draw(rt, "kind")
				switch said[kind] = rapid.SampledFrom([]string{"True", "False", "absent"}).Draw(rt, "value"); said[kind] {
				case "True":
					c.True(kind, "Word", "")
				case "False":
					c.False(kind, "Word", "")
				default:
					c.Remove(kind)
				}
			}
			name := rapid.SampledFrom([]string{"done", "requeue", "after", "error", "panic", "timeout", "stalled", "pending", "overdue", "paused"}).Draw(rt, "ending")
			end := endings[name]
			c.conclude(end)
			list = c.list
			checkKstatus(rt, c, name, said)
		}
	})
}

func checkKstatus(rt *rapid.T, c *Conditions, name string, said map[string]string) {
	_, readyThere := c.Get(ConditionReady)
	failed := endings[name].err != nil || endings[name].outcome == codePending
	switch {
	case name == "paused":
		if !c.isTrue(ConditionPaused) {
			rt.Fatal("paused, and no condition says so")
		}
		return
	case c.isTrue(ConditionPaused):
		rt.Fatal("not paused, and a condition says so")
	case !readyThere && said[ConditionReady] != "absent":
		rt.Fatal("Ready is absent")
	case failed && c.isTrue(ConditionReady):
		rt.Fatal("it failed and is Ready")
	case c.isTrue(ConditionStalled) != (name == "stalled" || name == "overdue") && said[ConditionStalled] != "True":
		rt.Fatalf("Stalled is %v", c.isTrue(ConditionStalled))
	case failed && c.isTrue(ConditionReconciling) == c.isTrue(ConditionStalled):
		rt.Fatal("after a failure exactly one of Reconciling and Stalled is true")
	case name == "done" && len(said) == 0 && (len(c.list) != 1 && len(c.list) != 2):
		rt.Fatalf("done, and there is more than Ready and what a reconciler added: %v", c.list)
	case name == "done" && len(said) == 0 && !c.isTrue(ConditionReady):
		rt.Fatal("done, and not Ready")
	}
	if _, there := c.Get(ConditionReconciling); there && said[ConditionReconciling] == "" && !c.isTrue(ConditionReconciling) {
		rt.Fatal("Reconciling is there and not true")
	}
}

func TestAReasonIsAlwaysOneThatTheServerTakes(t *testing.T) {
	valid := regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.StringN(0, 20, -1).Draw(rt, "reason")
		if got := wellFormed(s); !valid.MatchString(got) {
			rt.Fatalf("%q becomes %q", s, got)
		} else if valid.MatchString(s) && got != s {
			rt.Fatalf("%q is well-formed and becomes %q", s, got)
		}
	})
}

func TestConditionsThatAreNowhereTakeAnything(t *testing.T) {
	var c *Conditions
	c.True("A", "B", "")
	c.Remove("A")
	if _, ok := c.Get("A"); ok || c.isTrue("A") {
		t.Error("there is a condition on nil")
	}
}
