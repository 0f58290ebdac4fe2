package spot

import (
	"slices"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestABudgetSelectsPodsAsTheAPIServerDoes(t *testing.T) {
	pod := map[string]string{"app": "web", "tier": "front"}
	in := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	for name, test := range map[string]struct {
		selector *metav1.LabelSelector
		want     bool
	}{
		"no selector":        {nil, false},
		"an empty one":       {&metav1.LabelSelector{}, true},
		"its labels":         {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, true},
		"another value":      {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}, false},
		"a further label":    {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "zone": ""}}, false},
		"an expression":      {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{in("tier", "front", "back")}}, true},
		"a false expression": {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: []metav1.LabelSelectorRequirement{in("tier", "back")}}, false},
	} {
		if got := selects(test.selector, pod); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	for _, operator := range []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist, "Other"} {
		for _, r := range []metav1.LabelSelectorRequirement{in("tier", "front", "back"), in("tier", "back"), in("zone", "a"), in("zone", ""), in("tier")} {
			if r.Operator = operator; operator == metav1.LabelSelectorOpExists || operator == metav1.LabelSelectorOpDoesNotExist {
				r.Values = nil
			}
			selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{r}}
			parsed, err := metav1.LabelSelectorAsSelector(selector)
			if err == nil && selects(selector, pod) != parsed.Matches(labels.Set(pod)) {
				t.Errorf("%+v: got %v", r, selects(selector, pod))
			}
		}
	}
}

func TestABudgetThatItsControllerHasNotSeenAllowsNothing(t *testing.T) {
	seen := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
		Spec:       policyv1.PodDisruptionBudgetSpec{UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow)},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, DisruptionsAllowed: 3, CurrentHealthy: 10, DesiredHealthy: 7},
	}
	if got, want := budgetOf(seen), (plan.Budget{Name: "web", Allowed: 3, Desired: 7, Healthy: true, UnhealthyAlways: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	changed := seen.DeepCopy()
	changed.Generation = 3
	if got := budgetOf(changed).Allowed; got != 0 {
		t.Errorf("%d are allowed by what it was before", got)
	}
	if none := (&policyv1.PodDisruptionBudget{}); budgetOf(none).Healthy {
		t.Error("a budget that counts nothing yet is healthy")
	}
}

func TestAChangedBudgetWakesTheWorkloadsThatWaitForItAndNoOthers(t *testing.T) {
	key := func(kind, name string) policy.WorkloadKey {
		return policy.WorkloadKey{Kind: kind, NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
	}
	web, db, api := key(KindDeployment, "web"), key(KindStatefulSet, "db"), key(KindDeployment, "api")
	wait := func(budget string) []plan.Wait {
		return []plan.Wait{{Kind: plan.WaitBudget, Subject: budget}, {Kind: plan.WaitCooldown}}
	}
	budget := types.NamespacedName{Namespace: "shop", Name: "all"}
	w := newBudgetWaits()
	w.note(web, wait("all"))
	w.note(api, wait("other"))
	w.note(db, wait("all"))
	if got := w.waiting(budget, KindDeployment); !slices.Equal(got, []types.NamespacedName{web.NamespacedName}) {
		t.Errorf("got %v", got)
	}
	w.note(web, wait("other"))
	w.note(db, nil)
	if got := append(w.waiting(budget, KindDeployment), w.waiting(budget, KindStatefulSet)...); len(got) != 0 || len(w.byBudget) != 1 {
		t.Errorf("%v wait for what they do not wait for; %v is remembered", got, w.byBudget)
	}
	w.note(web, nil)
	w.note(api, nil)
	if len(w.byBudget)+len(w.of) != 0 {
		t.Errorf("%v and %v are remembered for ever", w.byBudget, w.of)
	}
}

func TestASelectorThatNamesTheHashIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		selector metav1.LabelSelector
		want     bool
	}{
		"a label":       {metav1.LabelSelector{MatchLabels: map[string]string{plan.TemplateHash: "1"}}, true},
		"an expression": {metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: plan.TemplateHash, Operator: metav1.LabelSelectorOpExists}}}, true},
		"neither":       {metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, false},
	} {
		if got := namesHash(&test.selector); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
