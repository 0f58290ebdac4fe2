package reconcile

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

func TestMembersWithKeysOfAPriorityAreServedInTurn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t, Options{WorkersPerMember: 2}, &queue{name: "c", perMember: 2})
		q := b.queues[0]
		members := rapid.IntRange(1, 6).Draw(rt, "members")
		left := map[string]int{}
		for i := range members {
			name := fmt.Sprint("m", i)
			l := b.join(q, name)
			left[name] = rapid.IntRange(1, 30).Draw(rt, "keys")
			for k := range left[name] {
				wakeChanged(q, l, fmt.Sprint(k))
			}
		}
		since := map[string]int{} // picks since a member was served
		for {
			req, _, ok := b.take(q)
			if !ok {
				break
			}
			member := req.ClusterName.String()
			for name := range left {
				since[name]++
			}
			since[member] = 0
			if left[member]--; left[member] == 0 {
				delete(left, member)
			}
			for name := range left {
				if since[name] > members {
					rt.Fatalf("%s waits for %d picks among %d members", name, since[name], members)
				}
			}
			b.finish(q, req, done)
		}
		if len(left) > 0 {
			rt.Fatalf("never served: %v", left)
		}
	})
}

func TestKeysOfAMemberAndPriorityAreServedInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t, Options{WorkersPerMember: 1000}, &queue{name: "c", perMember: 1000})
		q := b.queues[0]
		lines := map[string][]mcreconcile.Request{}
		for _, member := range modelMembers {
			l := b.join(q, member)
			for k := range rapid.IntRange(0, 20).Draw(rt, "keys") {
				priority := rapid.SampledFrom([]Priority{PriorityOrdered, PriorityChanged, PriorityBackground}).Draw(rt, "priority")
				q.wake(l, nsName(fmt.Sprint(k)), priority, nil)
				at := member + priority.String()
				lines[at] = append(lines[at], request(member, nsName(fmt.Sprint(k))))
			}
		}
		for {
			req, priority, ok := b.take(q)
			if !ok {
				break
			}
			at := req.ClusterName.String() + priority.String()
			if lines[at][0] != req {
				rt.Fatalf("%v was served before %v", req, lines[at][0])
			}
			lines[at] = lines[at][1:]
		}
		for at, line := range lines {
			if len(line) > 0 {
				rt.Fatalf("%s: never served: %v", at, line)
			}
		}
	})
}
