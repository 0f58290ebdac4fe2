package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestKeysAreListedInOrderPageByPage(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "one", perMember: 1}, &queue{name: "two", perMember: 1})
	for _, q := range b.queues {
		for _, member := range []string{"a", "b"} {
			l := b.join(q, member)
			for _, name := range []string{"y", "x"} {
				for _, namespace := range []string{"shop", "bank"} {
					q.wake(l, types.NamespacedName{Namespace: namespace, Name: name}, PriorityChanged, nil)
				}
			}
		}
	}
	var found []string
	after, pages := Key{}, 0
	for more := true; more; pages++ {
		var records []Record
		records, more = b.rt.RecordsIn(Filter{Member: "a", After: after, Limit: 3})
		for _, r := range records {
			after = r.Key
			found = append(found, r.Key.Controller+" "+r.Key.Namespace+"/"+r.Key.Name)
		}
	}
	want := []string{"one bank/x", "one bank/y", "one shop/x", "one shop/y", "two bank/x", "two bank/y", "two shop/x", "two shop/y"}
	if !slices.Equal(found, want) || pages != 3 {
		t.Errorf("%d pages with %v, want %v", pages, found, want)
	}
	if some, more := b.rt.RecordsIn(Filter{Member: "b", Controller: "two", Namespace: "shop"}); len(some) != 2 || more || some[0].Key.Member != "b" {
		t.Errorf("filtered: %v, more %t", some, more)
	}
	if none, more := b.rt.RecordsIn(Filter{Member: "c"}); len(none) != 0 || more {
		t.Errorf("of a member that nobody knows: %v", none)
	}
}

// Whoever asks for one record at a time makes nobody copy and sort all keys for each.
func TestAPageOfAMemberWithManyKeysKeepsAndSortsFewOfThem(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "one", perMember: 1})
	l := b.join(b.queues[0], "a")
	const keys = 20_000
	for i := range keys {
		b.queues[0].wake(l, types.NamespacedName{Namespace: []string{"shop", "bank"}[i%2], Name: fmt.Sprintf("%05d", i*7919%keys)}, PriorityChanged, nil)
	}
	for name, f := range map[string]Filter{
		"of all":         {Member: "a", Limit: 1},
		"of a namespace": {Member: "a", Namespace: "shop", Limit: 1},
		"of nothing":     {Member: "a", Namespace: "none", Limit: 1},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b.rt.RecordsIn(f)
		runtime.ReadMemStats(&after)
		if took, all := after.TotalAlloc-before.TotalAlloc, uint64(keys*unsafe.Sizeof(Key{})); took > all/4 {
			t.Errorf("%s: a page of one record took %d bytes; all keys are %d", name, took, all)
		}
	}
	for _, limit := range []int{1, 299, 7000} {
		var got []Record
		f, more := Filter{Member: "a", Namespace: "shop", Limit: limit}, true
		for more {
			var some []Record
			if some, more = b.rt.RecordsIn(f); len(some) == 0 || len(some) > limit {
				t.Fatalf("a page of %d has %d, more %t", limit, len(some), more)
			}
			got, f.After = append(got, some...), some[len(some)-1].Key
			if limit == 1 && len(got) == 20 {
				break
			}
		}
		want, _ := b.rt.RecordsIn(Filter{Member: "a", Namespace: "shop"})
		if len(want) != keys/2 || !slices.Equal(got, want[:len(got)]) || limit > 1 && len(got) != len(want) {
			t.Errorf("pages of %d: %d records of %d, or not in order", limit, len(got), len(want))
		}
	}
}

func TestControllersSayWhatTheyDoInAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		c := launch(h, For(h.Runtime, "maps", reconciler(func(context.Context, Request[*corev1.ConfigMap]) (Result, error) {
			return Done(), errors.New("broken")
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		a.add(configMap("two"))
		synctest.Wait()
		h.Hold("a", HoldBreaker, "it does not answer")
		want := ControllerState{Name: "maps", Member: "a", Kind: "v1 ConfigMap", Objects: 2, Held: "it does not answer"}
		if got := h.ControllersIn("a"); len(got) != 1 || got[0] != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got := h.ControllersIn("b"); len(got) != 0 {
			t.Errorf("of a member that nobody knows: %+v", got)
		}
		h.cancel()
	})
}
