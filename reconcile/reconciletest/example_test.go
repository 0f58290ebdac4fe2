package reconciletest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/reconciletest"
)

// exposer gives every Deployment a Service, once the Secret with its certificate is there.
type exposer struct{}

func (exposer) Reconcile(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
	applied, err := req.Apply(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: req.Object.Namespace, Name: req.Object.Name},
		Spec:       corev1.ServiceSpec{Selector: req.Object.Spec.Selector.MatchLabels, Ports: []corev1.ServicePort{{Port: 443}}},
	})
	if err != nil {
		return reconcile.Done(), err
	}
	if applied == reconcile.AppliedNew {
		req.Events.Normal("Exposed", "Service %s was created", req.Object.Name)
	}
	return reconcile.Done(), nil
}

func register(rt *reconcile.Runtime) (*reconcile.Controller, error) {
	return reconcile.For(rt, "exposer", exposer{}).
		Owns(clusters.Kind{Object: &corev1.Service{}}).
		DependsOn(func(d *appsv1.Deployment) []reconcile.Dependency {
			return []reconcile.Dependency{reconcile.OnSecret(types.NamespacedName{Namespace: d.Namespace, Name: d.Name + "-tls"}, "tls.crt")}
		}).
		Register()
}

func web() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
}

func certificate(keys ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-tls"}, Data: map[string][]byte{}}
	for _, key := range keys {
		s.Data[key] = []byte("s3cr3t-canary")
	}
	return s
}

func service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "Deployment/default/web",
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}}},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}},
	}
}

func TestExposer(t *testing.T) {
	reconciletest.Kit{Register: register}.Run(t,
		reconciletest.Case{
			Name:  "a Deployment without its certificate waits for it",
			Given: objects(web()),
			Want: reconciletest.Want{
				Result:  `RequeueAfter 5s "waits for Secret default/web-tls: it does not exist"`,
				Outcome: reconcile.OutcomeRequeue,
				Gone:    objects(service()),
			},
		},
		reconciletest.Case{
			Name:  "a Deployment gets its Service",
			Given: objects(web(), certificate("tls.crt", "tls.key")),
			Want: reconciletest.Want{
				Writes:  []string{"apply v1 Service default/web"},
				Events:  []string{"Normal Exposed: Service web was created"},
				Objects: objects(service()),
			},
		},
		reconciletest.Case{
			Name:  "an API server that refuses is asked again",
			Given: objects(web(), certificate("tls.crt")),
			Fail:  []reconciletest.Failure{{Verb: "apply", Kind: "Service", Nth: 1, Err: errors.New("etcd is away")}},
			Want: reconciletest.Want{
				Err:     "etcd is away",
				Outcome: reconcile.OutcomeError,
				Writes:  []string{"apply v1 Service default/web: failed"},
				Gone:    objects(service()),
			},
		},
		reconciletest.Case{
			Name: "a Deployment that is gone is nobody's business",
			Key:  types.NamespacedName{Namespace: "default", Name: "web"},
			Want: reconciletest.Want{Outcome: reconcile.OutcomeGone},
		},
	)
}

// What a case that does not hold says.
func ExampleKit() {
	kit := reconciletest.Kit{Register: register}
	for _, problem := range kit.Problems(context.Background(), reconciletest.Case{
		Name:  "a Deployment waits for a certificate with a key",
		Given: objects(web(), certificate("ca.crt")),
		Want:  reconciletest.Want{Writes: []string{"apply v1 Service default/web"}, Result: `RequeueAfter 5s "waits for a key"`},
	}) {
		fmt.Println(problem[:len("result")])
	}
	// Output:
	// result
	// writes
}
