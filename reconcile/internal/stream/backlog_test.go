package stream

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// reader is what a reader of changes knows.
type reader struct {
	known   map[string]string // version by name
	behind  bool              // a state was skipped and Resynced has not come
	resyncs int
}

func (r *reader) hear(t *rapid.T, all []Change[*corev1.ConfigMap]) {
	for _, c := range all {
		name := ""
		if c.Object != nil {
			name = c.Object.Name
		}
		version, knows := r.known[name]
		switch c.Type {
		case ChangeAdded:
			if knows {
				t.Fatalf("%s was added twice", name)
			}
			r.known[name] = state(c.Object)
		case ChangeUpdated:
			if !knows || version != state(c.Old) || version == state(c.Object) || c.Old.UID != c.Object.UID {
				t.Fatalf("%s: from %s to %s, and the reader knows %q", name, state(c.Old), state(c.Object), version)
			}
			r.known[name] = state(c.Object)
		case ChangeDeleted:
			if !knows || version != state(c.Object) {
				t.Fatalf("%s: %s was deleted, and the reader knows %q", name, state(c.Object), version)
			}
			delete(r.known, name)
		case ChangeResynced:
			r.behind, r.resyncs = false, r.resyncs+1
		case ChangeDisengaged:
			r.known = map[string]string{}
		}
	}
}

func state(cm *corev1.ConfigMap) string { return fmt.Sprintf("%s@%s", cm.UID, cm.ResourceVersion) }

func TestASlowReaderIsToldTheNewestStateAndNothingPilesUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBacklog[*corev1.ConfigMap]("a")
		r := &reader{known: map[string]string{}}
		there := map[string]*corev1.ConfigMap{}
		versions, skipped := 0, 0
		const objects = 5
		pick := func(t *rapid.T) string { return fmt.Sprint("cm-", rapid.IntRange(0, objects-1).Draw(t, "object")) }
		change := func(name string, now *corev1.ConfigMap) {
			if b.gaps[inDefault(name)] != nil {
				skipped, r.behind = skipped+1, true
			}
			b.event(there[name], now)
			if there[name] = now; now == nil {
				delete(there, name)
			}
		}
		write := func(name string, uid types.UID) {
			versions++
			now := configMap(name)
			now.UID, now.ResourceVersion = uid, fmt.Sprint(versions)
			change(name, now)
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				name := pick(t)
				uid := types.UID(fmt.Sprint("uid-", versions))
				if have := there[name]; have != nil && rapid.Float64Range(0, 1).Draw(t, "replace") < 0.8 {
					uid = have.UID
				}
				write(name, uid)
			},
			"delete": func(t *rapid.T) {
				if name := pick(t); there[name] != nil {
					change(name, nil)
				}
			},
			"read": func(t *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(t, "some") {
					r.hear(t, b.next())
				}
			},
			"read all": func(t *rapid.T) {
				for !b.empty() {
					r.hear(t, b.next())
				}
				want := map[string]string{}
				for name, cm := range there {
					want[name] = state(cm)
				}
				if !maps.Equal(r.known, want) {
					t.Fatalf("the reader knows %v, and there is %v", r.known, want)
				}
				if r.behind {
					t.Fatal("states were skipped, and the reader was not notified")
				}
				if skipped == 0 && r.resyncs > 0 {
					t.Fatal("resynced without having fallen behind")
				}
			},
			"": func(t *rapid.T) {
				if n := b.line.Len(); n > objects+1 || n < len(b.gaps) {
					t.Fatalf("%d entries are queued for %d objects", n, objects)
				}
			},
		})
	})
}
