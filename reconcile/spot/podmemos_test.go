package spot

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestOnlyOnePlanHasAMemoAndOwnersThatAreGoneHaveNone(t *testing.T) {
	var memos podMemos
	key := policy.WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
	sources := func(uids ...types.UID) (all []source) {
		for _, uid := range uids {
			all = append(all, source{Owner: plan.Owner{UID: uid}})
		}
		return all
	}
	first := sources("old", "new")
	memos.take(key, first)
	for i := range first {
		if first[i].memo = memoFor(first[i].memo, rememberedFrom); first[i].memo == nil {
			t.Fatal("a large owner has no memo")
		}
	}
	memos.keep(key, first)
	second, meanwhile := sources("new"), sources("new", "old")
	memos.take(key, second)
	if second[0].memo != first[1].memo {
		t.Errorf("the next plan has not the memo of the last")
	}
	memos.take(key, meanwhile)
	if meanwhile[0].memo != nil || meanwhile[1].memo != nil {
		t.Errorf("two plans have memos at once")
	}
	memos.keep(key, second)
	third := sources("new", "old")
	memos.take(key, third)
	if third[0].memo != second[0].memo || third[1].memo != nil {
		t.Errorf("after a plan without the old ReplicaSet its memo is %v, and the new one's %v", third[1].memo, third[0].memo)
	}
	memos.keep(key, third)
	memos.forget(key)
	if memos.take(key, third); third[0].memo != nil || len(memos.of) > 0 {
		t.Errorf("a forgotten workload has a memo, of %d", len(memos.of))
	}
	if memoFor(&nodes.PodMemo{}, rememberedFrom-1) != nil {
		t.Error("an owner that has become small keeps its memo")
	}
}
