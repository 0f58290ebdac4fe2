package depend

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
)

// indexModel is the reverse index as sets: who depends on what.
type indexModel map[string]map[Dependency]bool // by member and key

func TestTheReverseIndexKeepsExactlyTheEdgesThatHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := NewIndex(&members.Instances{}, NewOutside(nil, nil), slog.New(slog.DiscardHandler))
		model, flows := indexModel{}, map[string]*Flow{}
		flow := func(member string) *Flow {
			if flows[member] == nil {
				flows[member] = ds.NewFlow(member, configMapKind.GroupKind(), func(types.NamespacedName) {})
			}
			return flows[member]
		}
		names := rapid.SampledFrom([]string{"a", "b"})
		keys := rapid.Map(rapid.IntRange(0, 3), func(i int) types.NamespacedName { return inDefault(fmt.Sprint("k", i)) })
		dependency := rapid.Custom(func(t *rapid.T) Dependency {
			name := inDefault(fmt.Sprint("d", rapid.IntRange(0, 2).Draw(t, "name")))
			return rapid.SampledFrom([]Dependency{
				OnSecret(name), OnSecret(name, "key"), OnConfigMap(name).In("b"),
				OnCondition(deploymentKind, name, "Ready", metav1.ConditionTrue),
				OnCondition(deploymentKind, name, "Synced", metav1.ConditionTrue), OnEndpoint("https://example.com/" + name.Name),
			}).Draw(t, "dependency")
		})
		t.Repeat(map[string]func(*rapid.T){
			"reconcile": func(t *rapid.T) {
				member, key := names.Draw(t, "member"), keys.Draw(t, "key")
				l, id := flow(member), member+"/"+key.Name
				n := NewNeeds(l, key)
				declared := map[Dependency]bool{}
				for _, d := range rapid.SliceOfN(dependency, 0, 4).Draw(t, "needs") {
					d = d.of(member, key.Namespace)
					declared[d] = true
					ds.note(n, d)
				}
				complete := rapid.Bool().Draw(t, "complete")
				n.Settle(complete)
				if !complete {
					maps.Copy(declared, model[id])
				}
				if model[id] = declared; len(declared) == 0 {
					delete(model, id)
				}
			},
			"object goes": func(t *rapid.T) {
				member, key := names.Draw(t, "member"), keys.Draw(t, "key")
				flow(member).Forget(key)
				delete(model, member+"/"+key.Name)
			},
			"member leaves": func(t *rapid.T) {
				member := names.Draw(t, "member")
				old := flow(member)
				old.Leave()
				ds.note(&Needs{flow: old, key: inDefault("late")}, OnSecret(inDefault("d0"))) // a run that had not ended yet
				delete(flows, member)
				for id := range model {
					if id[:len(member)] == member {
						delete(model, id)
					}
				}
			},
			"": func(t *rapid.T) { ds.compare(t, model) },
		})
	})
}

// compare checks the index, both ways, against the model.
func (ds *Index) compare(t *rapid.T, model indexModel) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	have, want := map[string]bool{}, map[string]bool{}
	add := func(to map[string]bool, id string, d Dependency) {
		if d.external() {
			to[fmt.Sprint(d, " ← ", id)] = true
			return
		}
		to[fmt.Sprint(d.target(), " ← ", id)] = true
	}
	idOf := func(one *dependent) string { return one.flow.member + "/" + one.key.Name }
	places := map[place]bool{}
	for id, all := range model {
		for d := range all {
			add(want, id, d)
			if !d.external() {
				places[placeOf(d.target())] = true
			}
		}
	}
	for tgt, e := range ds.entries {
		for one, needs := range e.dependents {
			have[fmt.Sprint(tgt, " ← ", idOf(one))] = true
			if ours := ofTarget(one.needs, tgt); !slices.Equal(ours, needs) {
				t.Fatalf("%s needs %v of %v, and the entry says %v", idOf(one), ours, tgt, needs)
			}
		}
	}
	for d, p := range ds.endpoints {
		for one := range p.dependents {
			add(have, idOf(one), d)
		}
	}
	if !maps.Equal(have, want) {
		t.Fatalf("index\n%v, want\n%v", slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(want)))
	}
	if len(ds.watches) != len(places) || len(ds.nodes) != len(model) {
		t.Fatalf("%d watches and %d nodes for %d places and %d objects", len(ds.watches), len(ds.nodes), len(places), len(model))
	}
}

// ofTarget returns the dependencies that are on a target.
func ofTarget(all []Dependency, t target) (on []Dependency) {
	for _, d := range all {
		if d.target() == t {
			on = append(on, d)
		}
	}
	return on
}
