package stream

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/internal/notify"
)

// instance is one cache of a member, with the source that follows it.
type instance struct {
	source *streamSource[*corev1.ConfigMap]
	there  map[string]*corev1.ConfigMap
}

// A member's credentials or its kind change, and another source follows it. Sources that are over still deliver what was under way.
func TestAReaderKnowsWhatTheSourceThatFollowsAMemberHasDelivered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &stream[*corev1.ConfigMap]{wake: notify.New(), stop: make(chan struct{}),
			sources: map[string]*streamSource[*corev1.ConfigMap]{}, backlogs: map[string]*backlog[*corev1.ConfigMap]{}}
		r := &reader{known: map[string]string{}}
		var current *instance // nil: nobody follows the member
		var over []*instance
		versions := 0
		deliver := func(t *rapid.T, from *instance) {
			name := fmt.Sprint("cm-", rapid.IntRange(0, 2).Draw(t, "object"))
			have := from.there[name]
			if have != nil && rapid.Bool().Draw(t, "delete") {
				delete(from.there, name)
				from.source.handler().OnDelete(have)
				return
			}
			versions++
			now := configMap(name)
			now.ResourceVersion = fmt.Sprint(versions)
			from.there[name] = now
			if have == nil {
				from.source.handler().OnAdd(now, false)
			} else {
				from.source.handler().OnUpdate(have, now)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"follow": func(t *rapid.T) {
				if current != nil {
					t.Skip("the member is followed")
				}
				current = &instance{source: &streamSource[*corev1.ConfigMap]{stream: s, member: "a"}, there: map[string]*corev1.ConfigMap{}}
				s.sources["a"] = current.source
			},
			"leave": func(t *rapid.T) {
				if current == nil {
					t.Skip("nobody follows the member")
				}
				delete(s.sources, "a")
				s.end("a", errors.New("the member left"))
				over, current = append(over, current), nil
			},
			"deliver": func(t *rapid.T) {
				if current == nil {
					t.Skip("nobody follows the member")
				}
				deliver(t, current)
			},
			"deliver late": func(t *rapid.T) {
				if len(over) == 0 {
					t.Skip("no source is over")
				}
				deliver(t, over[rapid.IntRange(0, len(over)-1).Draw(t, "source")])
			},
			"read": func(t *rapid.T) {
				some, _ := s.take()
				r.hear(t, some)
			},
			"read all": func(t *rapid.T) {
				for some, _ := s.take(); len(some) > 0; some, _ = s.take() {
					r.hear(t, some)
				}
				want := map[string]string{}
				if current != nil {
					for name, cm := range current.there {
						want[name] = state(cm)
					}
				}
				if !maps.Equal(r.known, want) {
					t.Fatalf("the reader knows %v, and the source has delivered %v", r.known, want)
				}
			},
		})
	})
}
