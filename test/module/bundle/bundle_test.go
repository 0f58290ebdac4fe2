package bundle_test

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fleet-hub/bundle"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/reconciletest"
)

func roots(spec bundle.Spec) *bundle.Bundle {
	return &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "roots"}, Spec: spec}
}

func configMap(name, content string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: name}, Data: map[string]string{bundle.Key: content}}
}

func TestABundleIsAConfigMapOfItsSources(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), bundle.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	const status = "patch example.com/v1 Bundle platform/roots/status"
	both := roots(bundle.Spec{Sources: []string{"ours", "theirs"}, To: []string{"shop", "cart"}})
	renamed := roots(bundle.Spec{Sources: []string{"ours"}, Into: "trust"})
	old := bundle.Desire(roots(bundle.Spec{}), "one ")
	old.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Bundle", Name: "roots", UID: "Bundle/platform/roots", Controller: new(true)}}
	after := roots(bundle.Spec{Sources: []string{"ours"}, After: "ca"})
	ca := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "ca"}}
	reconciletest.Kit{Register: bundle.Register, Scheme: scheme}.Run(t,
		reconciletest.Case{
			Name: "one after the other", Given: []client.Object{both, configMap("ours", "one "), configMap("theirs", "two")},
			Want: reconciletest.Want{
				Writes:  []string{"apply v1 ConfigMap platform/roots", status},
				Objects: []client.Object{bundle.Desire(both, "one two")},
			},
		},
		reconciletest.Case{
			Name: "once all are there", Given: []client.Object{both, configMap("ours", "one ")},
			Want: reconciletest.Want{
				Result: `RequeueAfter 5s "waits for ConfigMap platform/theirs: it does not exist"`, Writes: []string{status},
				Conditions: []metav1.Condition{{Type: reconcile.ConditionReady, Status: "False", Reason: reconcile.ReasonDependencyNotReady}},
			},
		},
		reconciletest.Case{
			Name: "and what it comes after is available", Given: []client.Object{after, configMap("ours", "one "), ca},
			Want: reconciletest.Want{
				Result: `RequeueAfter 5s "waits for Deployment platform/ca: it has no condition Available"`, Writes: []string{status},
			},
		},
		reconciletest.Case{
			Name: "under one name only", Given: []client.Object{renamed, configMap("ours", "one "), old},
			Want: reconciletest.Want{
				Writes: []string{"apply v1 ConfigMap platform/trust", "delete v1 ConfigMap platform/roots", status},
				Gone:   []client.Object{old},
			},
		},
	)
}

func TestABundleIsConvertedThereAndBack(t *testing.T) {
	const stored = `{"apiVersion":"example.com/v1","kind":"Bundle","spec":{"into":"trust","sources":["ours","theirs"],"to":["shop"]}}`
	const older = `{"apiVersion":"example.com/v1alpha1","kind":"Bundle","spec":{"into":"trust","sources":"ours,theirs","to":"shop"}}`
	for _, way := range []struct{ from, to, want string }{
		{stored, "example.com/v1alpha1", older}, {older, "example.com/v1", stored}, {stored, "example.com/v1", stored},
	} {
		got, err := bundle.Convert([]byte(way.from), way.to)
		if err != nil || string(got) != way.want {
			t.Errorf("%s to %s: %s, %v", way.from, way.to, got, err)
		}
	}
	for _, refused := range [][2]string{{"{", "example.com/v1"}, {stored, "example.com/v2"}} {
		if got, err := bundle.Convert([]byte(refused[0]), refused[1]); err == nil {
			t.Errorf("%s to %s: %s", refused[0], refused[1], got)
		}
	}
}

func TestABundleIsNotMirroredIntoNamespacesOfTheSystem(t *testing.T) {
	for text, refused := range map[string]int{
		`{"spec":{"to":["shop"]}}`: 0, `{"spec":{"to":["shop","kube-system"]}}`: 1,
	} {
		judged, err := bundle.Review(module.Review{Object: []byte(text)})
		if err != nil || len(judged.Refusals) != refused {
			t.Errorf("%s: %v, %v", text, judged.Refusals, err)
		}
	}
}

func TestABundleIsTheTeamsThatSomebodyNamedOrElseTheDefaultTeams(t *testing.T) {
	for given, want := range map[string]string{"": bundle.DefaultTeam, "shop": "shop"} {
		object := &metav1.ObjectMeta{}
		if given != "" {
			object.Labels = map[string]string{bundle.TeamLabel: given}
		}
		if changed := bundle.Complete(object); changed != (given == "") || object.Labels[bundle.TeamLabel] != want {
			t.Errorf("%q became %q, changed: %t", given, object.Labels[bundle.TeamLabel], changed)
		}
	}
}
