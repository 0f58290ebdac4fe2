package reconcile

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// bench is a queue without controllers: the test is its workers.
type bench struct {
	rt     *Runtime
	queues []*queue
	flows  map[string]*flow // by queue and member
}

// hand is an idle worker: it holds nothing until the queue gives it a key.
type hand struct {
	queue *queue
	c     chan handout
}

func newBench(tb testing.TB, opts Options, queues ...*queue) *bench {
	tb.Helper()
	rt, err := NewRuntime(opts)
	if err != nil {
		tb.Fatal(err)
	}
	b := &bench{rt: rt, flows: map[string]*flow{}}
	for _, q := range queues {
		b.add(q)
	}
	return b
}

func (b *bench) add(q *queue) *queue {
	q = newQueue(b.rt, q.name, q.perMember, q.resync)
	b.queues = append(b.queues, q)
	b.rt.queues[q.name] = q
	return q
}

// join engages a queue in a member.
func (b *bench) join(q *queue, member string) *flow {
	e := &engagement{name: member}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	l := q.join(member, e)
	b.flows[q.name+"/"+member] = l
	return l
}

// take is a worker that asks for a key and goes away if there is none.
func (b *bench) take(q *queue) (mcreconcile.Request, Priority, bool) {
	b.rt.mu.Lock()
	defer b.rt.mu.Unlock()
	r := q.pick()
	if r == nil {
		return mcreconcile.Request{}, 0, false
	}
	return handOf(r).req, r.priority, true
}

// sit makes a worker wait for a key.
func (b *bench) sit(q *queue) *hand {
	b.rt.mu.Lock()
	defer b.rt.mu.Unlock()
	h := &hand{queue: q, c: make(chan handout, 1)}
	if r := q.pick(); r != nil {
		h.c <- handOf(r)
		return h
	}
	q.idle = append(q.idle, h.c)
	return h
}

// got is the key that a waiting worker was given.
func (h *hand) got() (handout, bool) {
	select {
	case out := <-h.c:
		return out, true
	default:
		return handout{}, false
	}
}

// finish ends a run with a decision.
func (b *bench) finish(q *queue, req mcreconcile.Request, v decision) {
	q.report(req, v)
	q.done(req)
}

func wakeChanged(q *queue, l *flow, name string) { q.wake(l, nsName(name), PriorityChanged, nil) }

func nsName(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

func (b *bench) record(t *testing.T, controller, member, name string) Record {
	t.Helper()
	r, ok := b.rt.Lookup(Key{Controller: controller, Member: member, NamespacedName: nsName(name)})
	if !ok {
		t.Fatalf("%s/%s/%s is not in the ledger", controller, member, name)
	}
	return r
}

// mustTake takes a key and checks its name.
func (b *bench) mustTake(t *testing.T, q *queue, member, name string) mcreconcile.Request {
	t.Helper()
	req, _, ok := b.take(q)
	if want := request(member, nsName(name)); !ok || req != want {
		t.Fatalf("took %v (%v), want %v", req, ok, want)
	}
	return req
}

func (b *bench) mustBeEmpty(t *testing.T, q *queue) {
	t.Helper()
	if req, _, ok := b.take(q); ok {
		t.Fatalf("took %v, want nothing", req)
	}
}

var (
	done  = decision{outcome: codeDone}
	gone  = decision{outcome: codeGone, next: nextGone}
	again = decision{outcome: codeError, attempts: 1, err: "broken", next: nextRetry, after: time.Hour}
)

const canary = "s3cr3t-canary"

var (
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	settingsKind   = corev1.SchemeGroupVersion.WithKind("ConfigMap")
)

func inDefault(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// releaseAll releases a hold of all members.
func (rt *Runtime) releaseAll(g Hold) { rt.Decide(g, func(string) string { return "" }) }
