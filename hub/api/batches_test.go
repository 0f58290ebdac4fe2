package api

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// remembered is an order of many keys of a member in a namespace, which is remembered, and final if it has ended.
func (bs *Batches) remembered(caller, member, namespace string, ended bool) *batch {
	b, _ := newBatch(context.Background(), &plimsollv1.RequeueMatchingRequest{Namespace: namespace}, member, caller, nil)
	if ended {
		b.end("")
	}
	bs.add(b)
	return b
}

func TestAnOrderOfManyIsFoundOnlyByItsMemberAndItsNamespace(t *testing.T) {
	bs := NewBatches()
	b := bs.remembered("alice", "prod", "shop", false)
	defer b.stop()
	for _, c := range []struct {
		what  string
		edit  func(*operationID)
		found bool
	}{
		{"as it is", func(*operationID) {}, true},
		{"of another member", func(id *operationID) { id.member = "dev" }, false},
		{"of another namespace", func(id *operationID) { id.namespace = "pay" }, false},
		{"of all namespaces", func(id *operationID) { id.namespace = "" }, false},
		{"of one key", func(id *operationID) { id.many = false }, false},
		{"another one", func(id *operationID) { id.local = "x" }, false},
	} {
		id := b.operationID()
		c.edit(&id)
		if found := bs.find(id) != nil; found != c.found {
			t.Errorf("%s: found is %v", c.what, found)
		}
	}
}

func TestManyOrdersOfManyOfOneCallerPushOutNoneOfAnother(t *testing.T) {
	bs := NewBatches()
	kept := []*batch{bs.remembered("alice", "prod", "shop", true), bs.remembered("bob", "dev", "pay", true), bs.remembered("mallory", "prod", "shop", false)}
	defer kept[2].stop()
	for i := range 2 * maxBatchOperations {
		bs.remembered("mallory", "prod", fmt.Sprint("n", i%3), true)
	}
	for _, b := range append(kept, bs.remembered("carol", "prod", "shop", true)) {
		if bs.find(b.operationID()) == nil {
			t.Errorf("the order of %s was pushed out", b.caller)
		}
	}
	if n := len(bs.all); n != maxBatchOperations {
		t.Errorf("%d orders are remembered, not %d", n, maxBatchOperations)
	}
}

// Whoever cancels an order while its last key is ordered learns that nothing was taken back, not that it was cancelled.
func TestAnOrderOfManyWhoseLastKeyIsOrderedIsNotCancelled(t *testing.T) {
	for lost, want := range map[string]bool{"": false, "this replica stops": true} {
		synctest.Test(t, func(t *testing.T) {
			b := NewBatches().remembered("alice", "prod", "shop", false)
			cancelled := make(chan bool, 1)
			go func() { cancelled <- b.cancel() }()
			synctest.Wait() // it waits for the one who orders
			b.end(lost)
			if got := <-cancelled; got != want {
				t.Errorf("lost %q: cancelled is %v with %v", lost, got, b.operation())
			}
		})
	}
}
