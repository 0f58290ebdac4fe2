package pages

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/reconciletest"
)

func page(footer string) *Page {
	return &Page{ObjectMeta: metav1.ObjectMeta{Namespace: "docs", Name: "hello"}, Spec: PageSpec{Text: "Hello", Footer: footer}}
}

func TestAPageBecomesAConfigMap(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	const apply = "apply v1 ConfigMap docs/hello-page"
	const status = "patch example.com/v1 Page docs/hello/status"
	footer := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "docs", Name: "legal"}, Data: map[string]string{"footer": "Bye"}}
	reconciletest.Kit{Register: Register, Scheme: scheme}.Run(t,
		reconciletest.Case{
			Name: "a text is published", Given: []client.Object{page("")},
			Want: reconciletest.Want{
				Writes:     []string{apply, status},
				Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Published"}},
				Objects:    []client.Object{Desire(page(""), "Hello")},
			},
		},
		reconciletest.Case{
			Name: "a footer goes below it", Given: []client.Object{page("legal"), footer},
			Want: reconciletest.Want{Writes: []string{apply, status}, Objects: []client.Object{Desire(page("legal"), "Hello\nBye")}},
		},
		reconciletest.Case{
			Name: "it waits for its footer", Given: []client.Object{page("legal")},
			Want: reconciletest.Want{
				Result:     `RequeueAfter 5s "waits for ConfigMap docs/legal: it does not exist"`,
				Writes:     []string{status},
				Conditions: []metav1.Condition{{Type: "Ready", Status: "False", Reason: "DependencyNotReady"}},
			},
		},
	)
}
