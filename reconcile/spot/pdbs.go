package spot

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// budgetKind caches the disruption budgets. They are optional: where they cannot be read, evictions are tried, and what the
// API server says counts, which it does anyway.
func budgetKind() clusters.Kind {
	return clusters.Kind{Object: &policyv1.PodDisruptionBudget{}, Optional: true, Keep: func(from, into client.Object) {
		src, dst := from.(*policyv1.PodDisruptionBudget), into.(*policyv1.PodDisruptionBudget)
		dst.Spec.Selector, dst.Spec.UnhealthyPodEvictionPolicy = src.Spec.Selector, src.Spec.UnhealthyPodEvictionPolicy
		dst.Status = policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: src.Status.ObservedGeneration, DisruptionsAllowed: src.Status.DisruptionsAllowed,
			CurrentHealthy: src.Status.CurrentHealthy, DesiredHealthy: src.Status.DesiredHealthy,
		}
	}}
}

// budgets reads the disruption budgets that select the pods of a workload, and notes at each pod which do. Pods are matched
// by the labels of their template, for more is not cached of them.
func (e *Engine) budgets(ctx context.Context, cache client.Reader, dir *directory, namespace string, o *plan.Observed) {
	var list policyv1.PodDisruptionBudgetList
	if err := cache.List(ctx, &list, client.InNamespace(namespace), readOnlyList); err != nil {
		o.BudgetsUnknown = true // not cached
		return
	}
	for i := range list.Items {
		if selector := list.Items[i].Spec.Selector; selector != nil && namesHash(selector) && o.NoRelease == "" {
			o.NoRelease = "PodDisruptionBudget " + namespace + "/" + list.Items[i].Name + " selects " + plan.TemplateHash
		}
	}
	index := map[int]int{} // in the list → in o.Budgets
	ofOwner := make(map[types.UID][]int, len(o.Owners))
	for i := range o.Owners {
		podLabels := dir.podLabels(ownerKey{namespace, o.Owners[i].UID})
		for at := range list.Items {
			if podLabels == nil || !selects(list.Items[at].Spec.Selector, podLabels) {
				continue
			}
			if _, known := index[at]; !known {
				index[at] = len(o.Budgets)
				o.Budgets = append(o.Budgets, budgetOf(&list.Items[at]))
			}
			ofOwner[o.Owners[i].UID] = append(ofOwner[o.Owners[i].UID], index[at])
		}
	}
	for i := range o.Pods {
		o.Pods[i].Budgets = ofOwner[o.Pods[i].Owner]
	}
}

func budgetOf(b *policyv1.PodDisruptionBudget) plan.Budget {
	budget := plan.Budget{
		Name: b.Name, Allowed: int(b.Status.DisruptionsAllowed), Desired: int(b.Status.DesiredHealthy),
		Healthy:         b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0,
		UnhealthyAlways: b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow,
	}
	if b.Status.ObservedGeneration < b.Generation { // nothing is known about it yet, and it may keep as many as it likes
		budget.Allowed, budget.Desired = 0, math.MaxInt
	}
	return budget
}

// selects reports whether a budget's selector matches; an empty one does, none does not.
func selects(selector *metav1.LabelSelector, podLabels map[string]string) bool {
	if selector == nil {
		return false
	}
	for key, value := range selector.MatchLabels {
		if got, has := podLabels[key]; !has || got != value {
			return false
		}
	}
	for i := range selector.MatchExpressions {
		if !meets(&selector.MatchExpressions[i], podLabels) {
			return false
		}
	}
	return true
}

// meets reports whether labels meet a requirement. It reads each value once: Kubernetes' own selectors check all of them first, for each
// workload and plan, and a tenant's budgets may have millions.
func meets(r *metav1.LabelSelectorRequirement, podLabels map[string]string) bool {
	value, has := podLabels[r.Key]
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return has && slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpNotIn:
		return !has || !slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpExists:
		return has
	case metav1.LabelSelectorOpDoesNotExist:
		return !has
	}
	return false
}

// namesHash reports whether a selector looks at the label that a release changes.
func namesHash(selector *metav1.LabelSelector) bool {
	_, named := selector.MatchLabels[plan.TemplateHash]
	return named || slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == plan.TemplateHash })
}

// podLabels returns the labels of an owner's template; nil when they are not known.
func (d *directory) podLabels(key ownerKey) map[string]string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if o := d.owners[key]; o != nil && o.template != nil {
		return o.template.labels
	}
	return nil
}

// budgetWaits remembers which workloads wait for which budgets, so that a change of one wakes those and no others. It is
// safe for concurrent use.
type budgetWaits struct {
	mu       sync.Mutex
	byBudget map[types.NamespacedName]map[policy.WorkloadKey]struct{}
	of       map[policy.WorkloadKey][]types.NamespacedName
}

func newBudgetWaits() *budgetWaits {
	return &budgetWaits{byBudget: map[types.NamespacedName]map[policy.WorkloadKey]struct{}{}, of: map[policy.WorkloadKey][]types.NamespacedName{}}
}

// note takes in what a workload waits for, as its last plan says; nil: nothing.
func (w *budgetWaits) note(key policy.WorkloadKey, waits []plan.Wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, budget := range w.of[key] {
		if delete(w.byBudget[budget], key); len(w.byBudget[budget]) == 0 {
			delete(w.byBudget, budget)
		}
	}
	delete(w.of, key)
	for _, wait := range waits {
		if wait.Kind != plan.WaitBudget || wait.Subject == "" {
			continue
		}
		budget := types.NamespacedName{Namespace: key.Namespace, Name: wait.Subject}
		if w.byBudget[budget] == nil {
			w.byBudget[budget] = map[policy.WorkloadKey]struct{}{}
		}
		w.byBudget[budget][key] = struct{}{}
		w.of[key] = append(w.of[key], budget)
	}
}

// waiting returns the workloads of a kind that wait for a budget.
func (w *budgetWaits) waiting(budget types.NamespacedName, kind string) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []types.NamespacedName
	for key := range w.byBudget[budget] {
		if key.Kind == kind {
			keys = append(keys, key.NamespacedName)
		}
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) })
	return keys
}

// workloadsOfBudget wakes the workloads that wait for a disruption budget when it changes.
func (e *Engine) workloadsOfBudget(kind string) reconcile.Mapper {
	return func(_ context.Context, m *reconcile.Member, obj client.Object) []types.NamespacedName {
		dir := e.directory(m.Name)
		if dir == nil {
			return nil
		}
		return dir.waits.waiting(client.ObjectKeyFromObject(obj), kind)
	}
}
