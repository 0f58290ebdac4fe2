package nodes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// PodMemo remembers what was read from the cached pods of one owner, so that the next plan of a large owner reads the pods that have changed
// and no others. A cache replaces an object that changes, so that a pod with the same address is the same in all it says. The zero value
// is empty. It is not safe for concurrent use, and the facts that it returned last must not be written while [PodMemo.Read] runs.
type PodMemo struct {
	places map[*corev1.Pod]int32
	pods   []*corev1.Pod // by place
	facts  []plan.Pod    // by place; as Read returned them, and as the plan that they were read for has completed them
}

// Read appends to dst what r reads from pods, which are *corev1.Pod as a cache holds them, in no order. The memo keeps the pods, and the
// part of the result that describes them, until the next call.
func (m *PodMemo) Read(r *PodReader, dst []plan.Pod, pods []any) []plan.Pod {
	if m.places == nil {
		m.places = make(map[*corev1.Pod]int32, len(pods))
	}
	kept, fresh := m.compare(pods)
	dst = slices.Grow(dst, len(pods))
	from, used := len(dst), 0
	for place, pod := range m.pods {
		switch {
		case kept[place]:
			facts, ok := r.again(&m.facts[place])
			if !ok {
				facts = r.Facts(pod)
			}
			dst = append(dst, facts)
			if place != used {
				m.places[pod] = int32(used)
			}
		case len(fresh) > 0: // takes the place of one that is gone
			delete(m.places, pod)
			pod, fresh = fresh[0], fresh[1:]
			dst = append(dst, r.Facts(pod))
			m.places[pod] = int32(used)
		default:
			delete(m.places, pod)
			continue
		}
		m.pods[used] = pod
		used++
	}
	clear(m.pods[used:])
	m.pods = m.pods[:used]
	for _, pod := range fresh {
		m.places[pod] = int32(len(m.pods))
		m.pods = append(m.pods, pod)
		dst = append(dst, r.Facts(pod))
	}
	m.facts = dst[from:len(dst):len(dst)]
	return dst
}

// compare returns which places hold a pod that is still there, and the pods that have none.
func (m *PodMemo) compare(pods []any) (kept []bool, fresh []*corev1.Pod) {
	kept = make([]bool, len(m.pods))
	for _, item := range pods {
		pod := item.(*corev1.Pod)
		if place, known := m.places[pod]; known {
			kept[place] = true
		} else {
			fresh = append(fresh, pod)
		}
	}
	return kept, fresh
}

// again returns the facts of a pod that has not changed since last was read from it and completed for a plan. It is false when
// that cannot be said without the pod: the plan may have added something that stays, or no known node has the pod.
func (r *PodReader) again(last *plan.Pod) (facts plan.Pod, ok bool) {
	if last.Evicted || last.Released != nil || last.NodeComing || !last.TriedUntil.IsZero() {
		return plan.Pod{}, false
	}
	node := r.node(last.Node)
	if !node.known {
		return plan.Pod{}, false
	}
	facts = *last
	facts.Capacity, facts.Interruption, facts.NodeJoined = node.capacity, node.interruption, node.joined
	facts.Domains, facts.Budgets = nil, nil
	return facts, true
}
