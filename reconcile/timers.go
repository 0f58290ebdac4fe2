package reconcile

import (
	"container/heap"
	"slices"
	"time"
)

// fireBatch bounds how many due records are queued under one hold of the lock.
const fireBatch = 512

// timers holds the records that a time will wake, by that time, and one time.Timer for the first of them. Guarded by
// Runtime.mu.
type timers struct {
	heap  dueHeap
	timer *time.Timer
	armed int64 // what the timer is set for; 0: not set
}

// set (re)places a record's timer.
func (t *timers) set(r *record, due int64) {
	r.due = due
	if r.heapIndex >= 0 {
		heap.Fix(&t.heap, int(r.heapIndex))
		return
	}
	heap.Push(&t.heap, r)
}

// clear removes a record's timer, if it has one.
func (t *timers) clear(r *record) {
	if r.heapIndex >= 0 {
		heap.Remove(&t.heap, int(r.heapIndex))
	}
}

// drop removes the timers of all records of a flow, in one pass.
func (t *timers) drop(l *flow) {
	t.heap = slices.DeleteFunc(t.heap, func(r *record) bool {
		if r.flow != l {
			return false
		}
		r.heapIndex = -1
		return true
	})
	for i, r := range t.heap {
		r.heapIndex = int32(i)
	}
	heap.Init(&t.heap)
}

// arm sets the timer for the first record, if it is not set for that time or an earlier one. A timer that fires early
// finds nothing due, and is armed again.
func (rt *Runtime) arm(now int64) {
	t := &rt.timers
	if len(t.heap) == 0 {
		return
	}
	due := t.heap[0].due
	if t.armed != 0 && t.armed <= due {
		return
	}
	t.armed = due
	wait := time.Duration(max(due-now, 0))
	if t.timer == nil {
		t.timer = time.AfterFunc(wait, rt.fire)
		return
	}
	t.timer.Reset(wait)
}

// fire queues every record that is due.
func (rt *Runtime) fire() {
	for more := true; more; {
		more = rt.fireSome()
	}
}

func (rt *Runtime) fireSome() (more bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.timers.armed = 0
	now := rt.now()
	for range fireBatch {
		if len(rt.timers.heap) == 0 || rt.timers.heap[0].due > now {
			rt.arm(now)
			return false
		}
		rt.expire(rt.timers.heap[0], now)
	}
	return true
}

// expire queues a record whose time has come: its own next try, or a resync that comes before it.
func (rt *Runtime) expire(r *record, now int64) {
	rt.timers.clear(r)
	if r.flow.member.detached != "" {
		r.flow.queue.giveUp(r)
		return
	}
	priority := PriorityBackground
	if r.state == keyWaiting && r.due >= r.nextTry {
		priority = PriorityChanged
	}
	r.flow.enqueue(r, priority, now)
	r.flow.queue.handOut()
}

// dueHeap is a heap.Interface of records; the earliest is first.
type dueHeap []*record

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = int32(i), int32(j)
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	r := x.(*record)
	r.heapIndex = int32(len(*h))
	*h = append(*h, r)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	r.heapIndex = -1
	return r
}
