package mirror_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fleet-hub/mirror"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/reconciletest"
)

func source(annotations map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "platform", Name: "trust", UID: "1", Labels: map[string]string{mirror.RoleLabel: mirror.RoleSource},
			Annotations: annotations,
		},
		Data: map[string]string{"ca.crt": "root"},
	}
}

func TestASourceIsCopied(t *testing.T) {
	const hold = "patch v1 ConfigMap platform/trust"
	to := map[string]string{mirror.ToAnnotation: "shop, cart"}
	conflict := apierrors.NewConflict(corev1.Resource("configmaps"), "trust", errors.New("it changed"))
	copies := mirror.Desire(source(to))
	if len(copies) != 2 || copies[0].Namespace != "shop" || copies[1].Namespace != "cart" || copies[0].Data["ca.crt"] != "root" {
		t.Fatalf("copies: %+v", copies)
	}
	register := func(rt *reconcile.Runtime) (*reconcile.Controller, error) {
		return mirror.Register(rt, mirror.Config{MaxCopies: 2})
	}
	reconciletest.Kit{Register: register, Scheme: clientgoscheme.Scheme}.Run(t,
		reconciletest.Case{
			Name: "into each namespace", Given: []client.Object{source(to)},
			Want: reconciletest.Want{
				Writes:  []string{hold, "apply v1 ConfigMap shop/trust", "apply v1 ConfigMap cart/trust", hold},
				Objects: []client.Object{copies[0], copies[1]},
			},
		},
		reconciletest.Case{
			Name: "and counted as it was read", Given: []client.Object{source(map[string]string{mirror.ToAnnotation: "shop"})},
			Fail: []reconciletest.Failure{{Verb: "patch", Kind: "ConfigMap", Name: "trust", Nth: 2, Err: conflict}},
			Want: reconciletest.Want{
				Writes: []string{hold, "apply v1 ConfigMap shop/trust", hold + ": failed"},
				Result: `Requeue "the source changed meanwhile"`,
			},
		},
		reconciletest.Case{
			Name:  "not into what is no namespace",
			Given: []client.Object{source(map[string]string{mirror.ToAnnotation: "No Namespace"})},
			Want:  reconciletest.Want{Writes: []string{hold}, Err: "annotation mirror.example.com/to: \"No Namespace\""},
		},
		reconciletest.Case{
			Name:  "not into more namespaces than the hub's configuration allows",
			Given: []client.Object{source(map[string]string{mirror.ToAnnotation: "shop, cart, pay"})},
			Want:  reconciletest.Want{Writes: []string{hold}, Err: "3 namespaces; modules.mirror.maxCopies is 2"},
		},
		reconciletest.Case{
			Name:  "not before what it waits for answers",
			Given: []client.Object{source(map[string]string{mirror.ToAnnotation: "shop", mirror.AfterAnnotation: "http://ready.example.com"})},
			Want: reconciletest.Want{
				Writes: []string{hold},
				Result: `RequeueAfter 30s "waits for http://ready.example.com: the URL must begin with https://"`,
			},
		},
	)
}
