package webapp

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/reconciletest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// unplaced is a placer that knows nothing.
type unplaced struct{}

func (unplaced) Summary(string, string, string, string) (report.Workload, bool) {
	return report.Workload{}, false
}

func (unplaced) Notify(func(member, kind, namespace, name string)) {}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestReconcile(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	const (
		account    = "apply v1 ServiceAccount eu/shop"
		service    = "apply v1 Service eu/shop"
		deployment = "apply apps/v1 Deployment eu/shop"
		status     = "patch apps.plimsoll.dev/v1 WebApp eu/shop/status"
	)
	all := []string{account, service, deployment, status}
	waiting := condition("Ready", "False", v1.ReasonWaitingForPods, "0 of 1 pods are created")
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "shop", errQuota{})
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: "shop", Labels: map[string]string{v1.LabelWebApp: "shop"}}}
	powerful := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "eu", Name: "shop"}} // somebody may have given it rights
	anothers := &appsv1.Deployment{ObjectMeta: powerful.ObjectMeta}
	running := anothers.DeepCopy()
	running.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(shop(), v1.GroupVersion.WithKind("WebApp"))}
	goes := func(account *corev1.ServiceAccount, owners ...metav1.OwnerReference) *corev1.ServiceAccount {
		account = account.DeepCopy()
		account.DeletionTimestamp, account.Finalizers, account.OwnerReferences = new(metav1.Now()), []string{"example.com/held"}, owners
		return account
	}
	owner, earlier := running.OwnerReferences[0], running.OwnerReferences[0]
	earlier.UID = "an-earlier-uid"
	had := shop(func(app *v1.WebApp) { app.Status.ReadyReplicas = 2 })
	going := shop(func(app *v1.WebApp) {
		app.Finalizers = []string{"foregroundDeletion"}
		app.DeletionTimestamp = new(metav1.Now())
	})
	reconciletest.Kit{Scheme: scheme, Register: func(rt *reconcile.Runtime) (*reconcile.Controller, error) {
		return (&Reconciler{Keys: keys, Placer: unplaced{}}).Register(rt, Schedule{})
	}}.Run(t,
		reconciletest.Case{Name: "everything is made", Given: []client.Object{shop()}, Want: reconciletest.Want{
			Writes:     all,
			Conditions: []metav1.Condition{waiting, condition("Created", "True", v1.ReasonCreated, ""), condition("Reconciling", "True", v1.ReasonWaitingForPods, "")},
		}},
		reconciletest.Case{Name: "it waits for its environment, and makes everything", Given: []client.Object{shop(func(app *v1.WebApp) {
			app.Spec.EnvFrom = []v1.EnvFrom{{Secret: "db"}}
		})}, Want: reconciletest.Want{
			Result: `RequeueAfter 5s "waits for Secret eu/db: it does not exist"`, Writes: all,
			Conditions: []metav1.Condition{condition("Ready", "False", "DependencyNotReady", "waits for Secret eu/db: it does not exist")},
		}},
		reconciletest.Case{Name: "what can be made is made when something is refused", Given: []client.Object{shop()},
			Fail: []reconciletest.Failure{{Verb: "apply", Kind: "Service", Err: quota}}, Want: reconciletest.Want{
				Err: "exceeded quota", Outcome: reconcile.OutcomeTerminal, Writes: []string{account, service + ": failed", deployment, status},
				Conditions: []metav1.Condition{condition("Stalled", "True", "Forbidden", ""), condition("Created", "False", v1.ReasonCreating, "")},
			}},
		reconciletest.Case{Name: "what is somebody else's is left alone", Given: []client.Object{shop(), theirs}, Want: reconciletest.Want{
			Err: "apply v1 Service eu/shop: it exists and has no controller, so the hub does not change it", Writes: []string{account, deployment, status},
			Conditions: []metav1.Condition{condition("Stalled", "True", "Terminal", "")},
		}},
		reconciletest.Case{Name: "without an account of its own there are no pods", Given: []client.Object{shop(), powerful}, Want: reconciletest.Want{
			Err: "apply v1 ServiceAccount eu/shop: it exists and has no controller, so the hub does not change it", Outcome: reconcile.OutcomeTerminal, Writes: []string{status},
			Conditions: []metav1.Condition{condition("Stalled", "True", "Terminal", ""), condition("Created", "False", v1.ReasonCreating, "")},
		}},
		reconciletest.Case{Name: "what ran as another's account is stopped", Given: []client.Object{had, powerful, running}, Want: reconciletest.Want{
			Check: func(t testing.TB, c client.Client) {
				app := &v1.WebApp{}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(had), app); err != nil || app.Status.ReadyReplicas != 0 {
					t.Errorf("%d replicas are ready, without a Deployment; %v", app.Status.ReadyReplicas, err)
				}
			},
			Err: "so the hub does not change it; there is no Deployment, because its pods would run as that account", Outcome: reconcile.OutcomeTerminal,
			Writes:     []string{"delete apps/v1 Deployment eu/shop", status},
			Conditions: []metav1.Condition{condition("Stalled", "True", "Terminal", ""), condition("Created", "False", v1.ReasonCreating, "")},
		}},
		reconciletest.Case{Name: "another's account is that also when a finalizer holds it", Given: []client.Object{shop(), goes(powerful), running}, Want: reconciletest.Want{
			Err: "because its pods would run as that account", Outcome: reconcile.OutcomeTerminal, Writes: []string{"delete apps/v1 Deployment eu/shop", status},
			Conditions: []metav1.Condition{condition("Stalled", "True", "Terminal", ""), condition("Created", "False", v1.ReasonCreating, "")},
		}},
		reconciletest.Case{Name: "nothing starts as an account that goes", Given: []client.Object{shop(), goes(powerful, owner)}, Want: reconciletest.Want{
			Result: `RequeueAfter 5s "` + errAccountGoes.Error() + `"`, Writes: []string{status},
			Conditions: []metav1.Condition{condition("Ready", "False", v1.ReasonCreating, errAccountGoes.Error()), condition("Created", "False", v1.ReasonCreating, "")},
		}},
		reconciletest.Case{Name: "what runs as our account that goes stays", Given: []client.Object{shop(), goes(powerful, owner), running}, Want: reconciletest.Want{
			Result: `RequeueAfter 5s "` + errAccountGoes.Error() + `"`, Writes: []string{status}, Objects: []client.Object{running},
		}},
		reconciletest.Case{Name: "what runs as the account of an earlier WebApp does not", Given: []client.Object{shop(), goes(powerful, earlier), running}, Want: reconciletest.Want{
			Result: `RequeueAfter 5s "` + errAccountGoes.Error() + `"`, Writes: []string{"delete apps/v1 Deployment eu/shop", status}, Gone: []client.Object{running},
		}},
		reconciletest.Case{Name: "somebody else's Deployment is not", Given: []client.Object{shop(), powerful, anothers}, Want: reconciletest.Want{
			Outcome: reconcile.OutcomeTerminal, Err: "because its pods would run as that account", Writes: []string{status},
		}},
		reconciletest.Case{Name: "what runs goes on while the account cannot be made", Given: []client.Object{shop(), running},
			Fail: []reconciletest.Failure{{Verb: "apply", Kind: "ServiceAccount", Err: quota}}, Want: reconciletest.Want{
				Err: "exceeded quota", Outcome: reconcile.OutcomeTerminal, Writes: []string{account + ": failed", status},
			}},
		reconciletest.Case{Name: "one with too many containers is left alone", Given: []client.Object{shop(func(app *v1.WebApp) {
			app.Spec.Containers = make([]v1.Container, 1001)
		})}, Want: reconciletest.Want{
			Err: "spec.containers: has 1001 items: must have at most 1000", Outcome: reconcile.OutcomeTerminal, Writes: []string{status},
		}},
		reconciletest.Case{Name: "one with too many sources of variables is left alone", Given: []client.Object{shop(func(app *v1.WebApp) {
			app.Spec.EnvFrom = make([]v1.EnvFrom, 257)
		})}, Want: reconciletest.Want{
			Err: "spec.envFrom: has 257 items: must have at most 256", Outcome: reconcile.OutcomeTerminal, Writes: []string{status},
		}},
		reconciletest.Case{Name: "one that goes is left to Kubernetes", Given: []client.Object{going}, Want: reconciletest.Want{
			Writes: []string{status}, Conditions: []metav1.Condition{condition("Ready", "False", v1.ReasonDeleting, "")},
		}},
	)
}

// errQuota is what an API server says of a quota.
type errQuota struct{}

func (errQuota) Error() string { return "exceeded quota: none" }
