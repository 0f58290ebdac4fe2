package stream

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAStreamDropsWhatASourceThatIsOverDelivers(t *testing.T) {
	s := &stream[*corev1.ConfigMap]{wake: make(chan struct{}, 1), stop: make(chan struct{}),
		sources: map[string]*streamSource[*corev1.ConfigMap]{}, backlogs: map[string]*backlog[*corev1.ConfigMap]{}}
	version := func(v string) *corev1.ConfigMap {
		cm := configMap("one")
		cm.ResourceVersion = v
		return cm
	}
	old := &streamSource[*corev1.ConfigMap]{stream: s, member: "a"}
	s.sources["a"] = &streamSource[*corev1.ConfigMap]{stream: s, member: "a"} // the next one follows
	s.sources["a"].handler().OnAdd(version("5"), true)
	old.handler().OnUpdate(version("1"), version("2")) // was under way when it was removed
	if some, _ := s.take(); len(some) != 1 || some[0].Object.ResourceVersion != "5" {
		t.Errorf("the reader gets %+v, and the newest is 5", some)
	}
}
