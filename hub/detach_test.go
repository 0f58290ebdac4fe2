package hub

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

func TestAMemberIsDetachedAsItsRegistrationSaysAndEachChangeIsToldOnce(t *testing.T) {
	g, _, rt := newTestHolds(t)
	recorder := events.NewFakeRecorder(10)
	g.events = recorder
	event := clusters.Event{Status: clusters.Status{Name: "a", Registration: clusters.Registration{Namespace: "ns", Name: "a"}}}
	told := func() string {
		select {
		case e := <-recorder.Events:
			return e
		default:
			return ""
		}
	}
	g.member(event)
	if _, detached := rt.Detached("a"); detached || told() != "" {
		t.Error("detached though nobody asked for it")
	}
	event.Status.Registration.Annotations = map[string]string{clusters.DetachedAnnotation: "it burnt down"}
	shown := shownMembers{provider: oneMember(event.Status), mine: func(string) bool { return false }}
	if status, _ := shown.Status("a"); len(status.Conditions) != 1 || status.Conditions[0].Type != conditionDetached || status.Conditions[0].Message != "it burnt down" {
		t.Errorf("the API shows %+v", status.Conditions)
	}
	g.member(event)
	if why, detached := rt.Detached("a"); !detached || why != "it burnt down" {
		t.Errorf("detached %v: %q", detached, why)
	}
	if e := told(); !strings.HasPrefix(e, "Warning Detached") || !strings.Contains(e, "it burnt down") {
		t.Errorf("event %q", e)
	}
	g.member(event)
	if e := told(); e != "" {
		t.Errorf("reported again: %q", e)
	}
	event.Status.Registration.Annotations = nil
	g.member(event)
	if _, detached := rt.Detached("a"); detached || !strings.HasPrefix(told(), "Normal Attached") {
		t.Error("still detached, or nobody was notified")
	}
	event.Status.Registration.Annotations = map[string]string{clusters.DetachedAnnotation: ""}
	g.member(event)
	event.Removed = true
	g.member(event)
	if _, detached := rt.Detached("a"); detached {
		t.Error("a member that was unregistered is detached for the next of its name")
	}
}
