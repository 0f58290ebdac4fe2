package reconcile_test

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/reconciletest"
)

// settings writes a ConfigMap for each Deployment, and deletes those that it wrote before under another name.
type settings struct{}

func (settings) Reconcile(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
	wanted := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: req.Object.Namespace, Name: req.Object.Name + "-" + req.Object.Labels["stage"]},
		Data:       map[string]string{"stage": req.Object.Labels["stage"]},
	}
	// A field that somebody else has set to another value stays theirs: people may set a stage by hand.
	_, err := req.Apply(ctx, wanted, reconcile.YieldConflicts())
	if apierrors.IsConflict(err) {
		return reconcile.Done(), reconcile.TerminalError(err)
	} else if err != nil {
		return reconcile.Done(), err
	}
	var have corev1.ConfigMapList
	if err := req.ListOwned(ctx, &have); err != nil {
		return reconcile.Done(), err
	}
	for i := range have.Items {
		if old := &have.Items[i]; old.Name != wanted.Name {
			if err := client.IgnoreNotFound(req.Client.Delete(ctx, old, client.Preconditions{UID: &old.UID})); err != nil {
				return reconcile.Done(), err
			}
		}
	}
	return reconcile.Done(), nil
}

// Finalize has nothing to do: Kubernetes collects what a Deployment owns.
func (settings) Finalize(context.Context, reconcile.Request[*appsv1.Deployment]) (reconcile.FinalizeResult, error) {
	return reconcile.NotOurs("Kubernetes collects the settings"), nil
}

var _ reconcile.Finalizer[*appsv1.Deployment] = settings{}

func registerSettings(rt *reconcile.Runtime) (*reconcile.Controller, error) {
	return reconcile.For(rt, "settings", settings{}).
		Owns(clusters.Kind{Object: &corev1.ConfigMap{}}, reconcile.AnyOwner()).
		DependsOn(func(d *appsv1.Deployment) []reconcile.Dependency {
			after := d.Annotations["example.com/after"]
			if after == "" {
				return nil
			}
			return []reconcile.Dependency{reconcile.OnCondition(
				appsv1.SchemeGroupVersion.WithKind("Deployment"), types.NamespacedName{Namespace: d.Namespace, Name: after},
				string(appsv1.DeploymentAvailable), metav1.ConditionTrue,
			)}
		}).
		Register()
}

func deployment(name, after string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{"stage": "prod"}, Annotations: map[string]string{"example.com/after": after},
	}}
}

func show(c reconciletest.Case) {
	problems := reconciletest.Kit{Register: registerSettings}.Problems(context.Background(), c)
	for _, problem := range problems {
		fmt.Println(problem)
	}
	if len(problems) == 0 {
		fmt.Println(c.Name)
	}
}

// An object is reconciled once what it waits for has a condition.
func ExampleOnCondition() {
	show(reconciletest.Case{
		Name:  "web waits for db",
		Given: []client.Object{deployment("web", "db"), deployment("db", "")},
		Want: reconciletest.Want{
			Outcome: reconcile.OutcomeRequeue, Result: `RequeueAfter 5s "waits for Deployment shop/db: it has no condition Available"`,
			Writes: []string{"patch apps/v1 Deployment shop/web"},
		},
	})
	// Output: web waits for db
}

// What an object owned before, and does not want any more, is found by its owner.
func ExampleRequest_ListOwned() {
	web := deployment("web", "")
	yes := true
	old := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-test", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "Deployment/shop/web", Controller: &yes,
	}}}}
	show(reconciletest.Case{
		Name:  "web-test makes way for web-prod",
		Given: []client.Object{web, old},
		Want: reconciletest.Want{
			Writes: []string{"patch apps/v1 Deployment shop/web", "apply v1 ConfigMap shop/web-prod", "delete v1 ConfigMap shop/web-test"},
			Gone:   []client.Object{old},
		},
	})
	// Output: web-test makes way for web-prod
}

// A finalizer may find that there is nothing of this hub's to clean up.
func ExampleNotOurs() {
	web := deployment("web", "")
	now := metav1.Now()
	web.DeletionTimestamp, web.Finalizers = &now, []string{"plimsoll.dev/settings"}
	show(reconciletest.Case{
		Name:  "web goes, and nothing was cleaned up",
		Given: []client.Object{web},
		Want:  reconciletest.Want{Outcome: reconcile.OutcomeNotOurs, Writes: []string{"patch apps/v1 Deployment shop/web"}, Gone: []client.Object{web}},
	})
	// Output: web goes, and nothing was cleaned up
}

// A few fields of an object that somebody else keeps are changed without an Update of the whole.
func ExamplePatchMerge() {
	ctx := context.Background()
	members := fake.NewClientBuilder().WithObjects(deployment("web", "")).Build()
	var web appsv1.Deployment
	if err := members.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "web"}, &web); err != nil {
		fmt.Println(err)
		return
	}
	promote := func(d *appsv1.Deployment) { d.Labels["stage"] = "canary-" + d.Labels["stage"] }
	changed, err := reconcile.PatchMerge(ctx, members, &web, promote, reconcile.Locked()) // it depends on what was read
	fmt.Println(changed, err, web.Labels["stage"])
	changed, err = reconcile.PatchMerge(ctx, members, &web, func(*appsv1.Deployment) {})
	fmt.Println(changed, err)
	// Output:
	// true <nil> canary-prod
	// false <nil>
}

// A controller is a reconciler for one kind, with what else it follows. The same code runs in a hub and in a test.
func ExampleFor() {
	register := func(rt *reconcile.Runtime) (*reconcile.Controller, error) {
		return reconcile.For(rt, "settings", settings{}).
			Owns(clusters.Kind{Object: &corev1.ConfigMap{}}, reconcile.AnyOwner()).
			Predicate(func(_, now *appsv1.Deployment) bool { return now.Labels["stage"] != "" }).
			Backoff(time.Second, time.Minute).
			Deadline(30 * time.Second).
			Register()
	}
	problems := reconciletest.Kit{Register: register}.Problems(context.Background(), reconciletest.Case{
		Name:  "web gets its settings",
		Given: []client.Object{deployment("web", "")},
		Want: reconciletest.Want{
			Outcome: reconcile.OutcomeDone,
			Writes:  []string{"patch apps/v1 Deployment shop/web", "apply v1 ConfigMap shop/web-prod"},
		},
	})
	fmt.Println(len(problems), "problems", problems)
	// Output: 0 problems []
}
