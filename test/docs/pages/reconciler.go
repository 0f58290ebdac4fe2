package pages

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// A Reconciler keeps a ConfigMap for each Page.
type Reconciler struct{}

// Reconcile brings one Page to its spec, in the member that it is in.
func (Reconciler) Reconcile(ctx context.Context, req reconcile.Request[*Page]) (reconcile.Result, error) {
	page := req.Object
	text := page.Spec.Text
	if name := page.Spec.Footer; name != "" {
		key := types.NamespacedName{Namespace: page.Namespace, Name: name}
		if unmet := req.Require(ctx, reconcile.OnConfigMap(key, "footer")); unmet != nil {
			return reconcile.WaitFor(unmet), nil
		}
		var footer corev1.ConfigMap
		if err := req.Live.Get(ctx, key, &footer); err != nil {
			return reconcile.Done(), err
		}
		text += "\n" + footer.Data["footer"]
	}
	wanted := Desire(page, text)
	if _, err := req.Apply(ctx, wanted); err != nil {
		return reconcile.Done(), err
	}
	page.Status.Length = len(text)
	req.Log.Info("published", "bytes", len(text))
	req.Conditions.True(reconcile.ConditionReady, "Published", "%d bytes are in ConfigMap %s", len(text), wanted.Name)
	return reconcile.Done(), nil
}

// Desire says what a Page consists of. It asks nobody, so it is tested without anybody.
func Desire(page *Page, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: page.Namespace, Name: page.Name + "-page"},
		Data:       map[string]string{"index.html": text},
	}
}

// Register adds the reconciler to a runtime.
func Register(rt *reconcile.Runtime) (*reconcile.Controller, error) {
	return reconcile.For(rt, "page", Reconciler{}).
		Owns(clusters.Kind{Object: &corev1.ConfigMap{}}).
		Workers(2).
		Register()
}
