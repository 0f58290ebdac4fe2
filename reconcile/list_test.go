package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

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
