package reconciletest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/reconciletest"
)

func objects(all ...client.Object) []client.Object { return all }

// busy is a reconciler that does what a test sets.
type busy func(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error)

func (b busy) Reconcile(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
	return b(ctx, req)
}

func kitOf(do busy) reconciletest.Kit {
	return reconciletest.Kit{Register: func(rt *reconcile.Runtime) (*reconcile.Controller, error) {
		return reconcile.For(rt, "busy", do).Owns(clusters.Kind{Object: &corev1.ConfigMap{}}).
			Index(&corev1.ConfigMap{}, "tier", func(o client.Object) []string { return []string{o.GetLabels()["tier"]} }).Register()
	}}
}

func note(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"v": value}}
}

// writing does one of each write.
func writing(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
	fresh := note("fresh", "1")
	update := note("there", "2")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"v":"3"}}`))
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"replicas":4,"conditions":[{"type":"Available","status":"True","reason":"Enough"}]}}`))
	return reconcile.Requeue("look again"), errors.Join(
		req.Client.Create(ctx, fresh), req.Client.Update(ctx, update), req.Client.Patch(ctx, note("there", ""), patch),
		req.Client.Status().Patch(ctx, web(), status), req.Client.Delete(ctx, note("old", "")),
	)
}

func TestEveryWriteIsComparedAndWhatIsThereAfterwards(t *testing.T) {
	good := reconciletest.Case{
		Given: objects(web(), note("there", "1"), note("old", "1")),
		Want: reconciletest.Want{
			Result: `Requeue "look again"`, Outcome: reconcile.OutcomeRequeue,
			Writes: []string{"create v1 ConfigMap default/fresh", "update v1 ConfigMap default/there", "patch v1 ConfigMap default/there",
				"patch apps/v1 Deployment default/web/status", "delete v1 ConfigMap default/old"},
			Objects:    objects(note("fresh", "1"), note("there", "3")),
			Gone:       objects(note("old", "")),
			Conditions: []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue, Reason: "Enough"}},
		},
	}
	if problems := kitOf(writing).Problems(t.Context(), good); len(problems) > 0 {
		t.Fatalf("a case that holds has problems: %s", strings.Join(problems, "\n"))
	}
	for name, tc := range map[string]struct {
		change func(*reconciletest.Want)
		says   []string
	}{
		"result":    {func(w *reconciletest.Want) { w.Result = "" }, []string{"result (-want +got)", `"Done"`, `look again`}},
		"outcome":   {func(w *reconciletest.Want) { w.Outcome = reconcile.OutcomeDone }, []string{"outcome", "Done", "Requeue"}},
		"error":     {func(w *reconciletest.Want) { w.Err = "broken" }, []string{`error: there is none, and one should hold "broken"`}},
		"writes":    {func(w *reconciletest.Want) { w.Writes = w.Writes[1:] }, []string{"writes (-want +got)", "create v1 ConfigMap default/fresh"}},
		"events":    {func(w *reconciletest.Want) { w.Events = []string{"Normal A: b"} }, []string{"events (-want +got)", "Normal A: b"}},
		"object":    {func(w *reconciletest.Want) { w.Objects = objects(note("there", "7")) }, []string{"v1 ConfigMap default/there (-want +got)", `"7"`, `"3"`}},
		"missing":   {func(w *reconciletest.Want) { w.Objects = objects(note("nowhere", "7")) }, []string{"default/nowhere", "not found"}},
		"gone":      {func(w *reconciletest.Want) { w.Gone = objects(note("there", "")) }, []string{"v1 ConfigMap default/there is there, and should be gone"}},
		"condition": {func(w *reconciletest.Want) { w.Conditions[0].Status = "False" }, []string{"conditions", "Available=False Enough", "Available=True Enough"}},
		"absent":    {func(w *reconciletest.Want) { w.Conditions[0].Type = "Ready" }, []string{"conditions", "Ready=True Enough"}},
	} {
		c := good
		c.Want.Conditions = append([]metav1.Condition{}, good.Want.Conditions...)
		tc.change(&c.Want)
		problems := strings.Join(kitOf(writing).Problems(t.Context(), c), "\n")
		for _, word := range tc.says {
			if !strings.Contains(plain(problems), word) {
				t.Errorf("%s: %q is not said by\n%s", name, word, problems)
			}
		}
	}
}

// plain undoes go-cmp's habit of using no-break spaces.
func plain(s string) string { return strings.ReplaceAll(s, "\u00a0", " ") }

func TestTheNthCallFails(t *testing.T) {
	conflict := errors.New("conflict")
	tries := func(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
		var list corev1.ConfigMapList
		if err := req.Client.List(ctx, &list, client.MatchingFields{"tier": "a"}); err != nil {
			return reconcile.Done(), err
		}
		first := req.Client.Update(ctx, note("there", "2"))
		if second := req.Client.Update(ctx, note("there", "3")); !errors.Is(second, conflict) || first != nil {
			return reconcile.Done(), errors.New("the wrong call failed")
		}
		return reconcile.Done(), req.Client.Update(ctx, note("there", "4"))
	}
	c := reconciletest.Case{
		Given: objects(web(), note("there", "1")),
		Fail:  []reconciletest.Failure{{Verb: "update", Kind: "ConfigMap", Name: "there", Nth: 2, Err: conflict}},
		Want: reconciletest.Want{
			Writes:  []string{"update v1 ConfigMap default/there", "update v1 ConfigMap default/there: failed", "update v1 ConfigMap default/there"},
			Objects: objects(note("there", "4")),
		},
	}
	kitOf(tries).Run(t, c)
	c.Fail = append(c.Fail, reconciletest.Failure{Verb: "delete", Kind: "ConfigMap"})
	if problems := kitOf(tries).Problems(t.Context(), c); len(problems) != 1 || !strings.Contains(problems[0], "was to fail did not happen") {
		t.Errorf("a failure that did not happen: %v", problems)
	}
	c = reconciletest.Case{Given: objects(web()), Fail: []reconciletest.Failure{{Verb: "list", Kind: "ConfigMap"}},
		Want: reconciletest.Want{Err: "the test lets this call fail", Outcome: reconcile.OutcomeError}}
	kitOf(tries).Run(t, c)
}

func TestAPanicIsAnOutcome(t *testing.T) {
	kitOf(func(context.Context, reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) { panic("oh") }).Run(t, reconciletest.Case{
		Given: objects(web()), Want: reconciletest.Want{Err: "panic: oh", Outcome: reconcile.OutcomePanic},
	})
}

func TestDependenciesAreLookedForInOtherMembers(t *testing.T) {
	kit := kitOf(func(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
		return reconcile.WaitFor(req.Require(ctx,
			reconcile.OnConfigMap(types.NamespacedName{Name: "settings"}, "v").In("other"),
			reconcile.OnConfigMap(types.NamespacedName{Name: "settings"}).In("nowhere"))), nil
	})
	kit.Run(t, reconciletest.Case{
		Given: objects(web()), Elsewhere: map[string][]client.Object{"other": objects(note("settings", "1"))},
		Want: reconciletest.Want{Result: `RequeueAfter 5s "waits for ConfigMap default/settings in member nowhere: the member is not there"`},
	})
}
