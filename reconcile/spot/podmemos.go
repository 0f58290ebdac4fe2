package spot

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// rememberedFrom is the number of pods from which an owner has a memo. Fewer pods are read in about a millisecond.
const rememberedFrom = 500

// podMemos keeps, between the plans of a workload, what was read from the pods of its large owners. A plan takes the memos and
// returns them when it writes no more to what it observed: the memos share that. The zero value is empty. It is safe for concurrent use.
type podMemos struct {
	mu sync.Mutex
	of map[policy.WorkloadKey]map[types.UID]*nodes.PodMemo // by owner
}

// take moves the memos of a workload into its sources.
func (m *podMemos) take(key policy.WorkloadKey, sources []source) {
	m.mu.Lock()
	memos := m.of[key]
	delete(m.of, key)
	m.mu.Unlock()
	for i := range sources {
		sources[i].memo = memos[sources[i].UID]
	}
}

// keep returns the memos of a workload's sources. Those of other owners are dropped: their pods are gone.
func (m *podMemos) keep(key policy.WorkloadKey, sources []source) {
	var memos map[types.UID]*nodes.PodMemo
	for i := range sources {
		if memo := sources[i].memo; memo != nil {
			if memos == nil {
				memos = make(map[types.UID]*nodes.PodMemo, 1)
			}
			memos[sources[i].UID] = memo
		}
	}
	if memos == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[policy.WorkloadKey]map[types.UID]*nodes.PodMemo{}
	}
	m.of[key] = memos
}

// forget drops the memos of a workload.
func (m *podMemos) forget(key policy.WorkloadKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, key)
}

// memoFor returns the memo with which so many pods are read, a new one if there is none; nil for few pods.
func memoFor(memo *nodes.PodMemo, pods int) *nodes.PodMemo {
	switch {
	case pods < rememberedFrom:
		return nil
	case memo == nil:
		return &nodes.PodMemo{}
	}
	return memo
}
