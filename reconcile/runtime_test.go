package reconcile

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

func TestRecordsComeInOrderAndMayBeLeftEarly(t *testing.T) {
	b := newBench(t, Options{}, &queue{name: "y", perMember: 5}, &queue{name: "x", perMember: 5})
	var want []Key
	for _, q := range b.queues {
		for _, member := range []string{"b", "a"} {
			l := b.join(q, member)
			for i := range 2*snapshotBatch + 7 {
				key := types.NamespacedName{Namespace: fmt.Sprint(i % 3), Name: fmt.Sprint(i)}
				q.wake(l, key, PriorityChanged, nil)
				want = append(want, Key{Controller: q.name, Member: member, NamespacedName: key})
			}
		}
	}
	slices.SortFunc(want, compareKeys)
	var all, ofA []Key
	for r := range b.rt.Records("") {
		all = append(all, r.Key)
	}
	for r := range b.rt.Records("a") {
		ofA = append(ofA, r.Key)
	}
	if !slices.Equal(all, want) {
		t.Errorf("%d records, want %d in the order of their keys", len(all), len(want))
	}
	if want = slices.DeleteFunc(want, func(k Key) bool { return k.Member != "a" }); !slices.Equal(ofA, want) {
		t.Errorf("%d records of a member, want %d", len(ofA), len(want))
	}
	for range b.rt.Records("") {
		break // nothing may continue behind our back
	}
}

// versions counts changes of keys and what reconciles saw of them.
type versions struct {
	made, seen [16]atomic.Int64
}

func TestNoChangeIsLostBetweenManyProducersWorkersAndHolds(t *testing.T) {
	b := newBench(t, Options{WorkersPerMember: 3, Workers: 6}, &queue{name: "x", perMember: 2}, &queue{name: "y", perMember: 3})
	members := []string{"a", "b", "c"}
	changes := map[string]*versions{}
	var producers sync.WaitGroup
	for _, q := range b.queues {
		for _, member := range members {
			changes[q.name+member] = &versions{}
			b.join(q, member)
		}
		q.open(func(req mcreconcile.Request) { consume(q, req, changes) })
	}
	for _, q := range b.queues {
		for i, member := range members {
			producers.Go(func() { produce(q, q.flows[member], changes[q.name+member], int64(i)) })
		}
	}
	producers.Go(func() {
		for i := range 2000 {
			b.rt.Hold(members[i%3], Hold(i%2), "closed")
			b.rt.Release(members[i%3], Hold(i%2))
		}
	})
	producers.Wait()
	for {
		if err := b.rt.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b.queues[0].waiting()+b.queues[1].waiting() == 0 {
			break
		}
	}
	for _, q := range b.queues {
		q.close()
	}
	for name, v := range changes {
		for i := range v.made {
			if made, seen := v.made[i].Load(), v.seen[i].Load(); made != seen {
				t.Errorf("%s/%d: %d changes, the last reconcile saw %d", name, i, made, seen)
			}
		}
	}
}

func produce(q *queue, l *flow, v *versions, seed int64) {
	for n := range int64(3000) {
		i := (n*7 + seed) % int64(len(v.made))
		v.made[i].Add(1)
		q.wake(l, nsName(fmt.Sprint(i)), Priority(n%int64(priorities)), nil)
	}
}

func consume(q *queue, req mcreconcile.Request, changes map[string]*versions) {
	var i int
	_, _ = fmt.Sscan(req.Name, &i)
	v := changes[q.name+req.ClusterName.String()]
	v.seen[i].Store(v.made[i].Load())
	q.report(req, done)
}
