// Package bundle puts several ConfigMaps into one, which its mirror then copies into other namespaces. Bundles are a kind of its
// own, so this is the example for everything that a module with a kind brings: Go types, a definition in two versions, what members
// ask about objects (module.go), and a reconciler that waits for what an object depends on.
package bundle

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fleet-hub/mirror"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

const (
	// ControllerName is the name in the API and the metrics.
	ControllerName = "bundle"
	// Key of a source, and of the ConfigMap with all of them.
	Key = "ca.crt"
)

// Reconciler keeps a ConfigMap for each Bundle.
type Reconciler struct{}

// Needs are the sources of a Bundle, and what it comes after.
func Needs(bundle *Bundle) (all []reconcile.Dependency) {
	for _, name := range bundle.Spec.Sources {
		all = append(all, reconcile.OnConfigMap(types.NamespacedName{Name: name}, Key))
	}
	if bundle.Spec.After != "" {
		all = append(all, reconcile.OnCondition(appsv1.SchemeGroupVersion.WithKind("Deployment"),
			types.NamespacedName{Namespace: bundle.Namespace, Name: bundle.Spec.After}, string(appsv1.DeploymentAvailable), metav1.ConditionTrue))
	}
	return all
}

// Reconcile is called once the sources are there.
func (Reconciler) Reconcile(ctx context.Context, req reconcile.Request[*Bundle]) (reconcile.Result, error) {
	bundle, content := req.Object, ""
	for _, name := range bundle.Spec.Sources {
		var source corev1.ConfigMap // of ConfigMaps only those with a role are cached
		if err := req.Live.Get(ctx, types.NamespacedName{Namespace: bundle.Namespace, Name: name}, &source); err != nil {
			return reconcile.Done(), err
		}
		content += source.Data[Key]
	}
	wanted := Desire(bundle, content)
	if _, err := req.Apply(ctx, wanted, reconcile.YieldConflicts()); apierrors.IsConflict(err) {
		return reconcile.Done(), reconcile.TerminalError(fmt.Errorf("somebody else changed it: %w", err))
	} else if err != nil {
		return reconcile.Done(), err
	}
	if err := prune(ctx, req, wanted.Name); err != nil {
		return reconcile.Done(), err
	}
	bundle.Status.Bytes = len(content)
	return reconcile.Done(), nil
}

// Desire is the ConfigMap of a Bundle.
func Desire(bundle *Bundle, content string) *corev1.ConfigMap {
	name := bundle.Spec.Into
	if name == "" {
		name = bundle.Name
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: bundle.Namespace, Name: name, Labels: map[string]string{mirror.RoleLabel: mirror.RoleSource},
			Annotations: map[string]string{mirror.ToAnnotation: strings.Join(bundle.Spec.To, ",")},
		},
		Data: map[string]string{Key: content},
	}
}

// prune deletes the ConfigMaps of a Bundle that it had under other names.
func prune(ctx context.Context, req reconcile.Request[*Bundle], wanted string) error {
	var owned corev1.ConfigMapList
	if err := req.ListOwned(ctx, &owned); err != nil {
		return err
	}
	for i := range owned.Items {
		if owned.Items[i].Name == wanted {
			continue
		}
		if _, err := req.Delete(ctx, &owned.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
