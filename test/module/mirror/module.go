package mirror

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// Module is what a hub is given: the controller, its configuration, the rights that it needs in members, and a metric of its own.
func Module() hub.Module {
	config := DefaultConfig()
	return hub.Module{
		Name:   ControllerName,
		Config: &config, // is read before Register is called
		Register: func(host hub.Host) ([]*reconcile.Controller, error) {
			controller, err := Register(host.Runtime, config)
			return []*reconcile.Controller{controller}, err
		},
		Rights: []clusters.Access{{
			Resource: "configmaps", Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}, For: "mirroring ConfigMaps",
		}},
		Run: count,
	}
}

// Kind is what is cached of ConfigMaps: those with a role, so memory follows what is mirrored and not how many a member has.
func Kind() clusters.Kind {
	hasRole, err := labels.NewRequirement(RoleLabel, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	return clusters.Kind{Object: &corev1.ConfigMap{}, Labels: labels.NewSelector().Add(*hasRole)}
}

// Register adds the controller to a runtime.
func Register(rt *reconcile.Runtime, config Config) (*reconcile.Controller, error) {
	return reconcile.For(rt, ControllerName, Reconciler{config}).
		Kind(Kind()).
		Domain("mirror.example.com").
		Predicate(func(_, now *corev1.ConfigMap) bool { return now.Labels[RoleLabel] == RoleSource }).
		Watches(Kind(), sourceOf, reconcile.When(func(_, now client.Object) bool { return now.GetLabels()[RoleLabel] == RoleCopy })).
		RateLimit(20, 100).
		FinalizeDeadline(5 * time.Minute).
		Register()
}

// sourceOf wakes the source of a copy that somebody changed or deleted.
func sourceOf(_ context.Context, _ *reconcile.Member, copied client.Object) []types.NamespacedName {
	namespace, name, ok := splitName(copied.GetAnnotations()[FromAnnotation])
	if !ok {
		return nil
	}
	return []types.NamespacedName{{Namespace: namespace, Name: name}}
}

// count keeps a metric of how many copies each member has, by following the ConfigMaps in the caches of all members.
func count(ctx context.Context, host hub.Host) error {
	copies := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "mirror_copies", Help: "Mirrored ConfigMaps in a member."}, []string{"member"})
	if err := host.Registerer.Register(copies); err != nil {
		return err
	}
	for change := range reconcile.Changes[*corev1.ConfigMap](ctx, host.Runtime, "") {
		if change.Type == reconcile.ChangeDisengaged {
			copies.DeleteLabelValues(change.Member)
			continue
		}
		if change.Object == nil || change.Object.Labels[RoleLabel] != RoleCopy {
			continue
		}
		switch change.Type {
		case reconcile.ChangeAdded:
			copies.WithLabelValues(change.Member).Inc()
		case reconcile.ChangeDeleted:
			copies.WithLabelValues(change.Member).Dec()
		}
	}
	return ctx.Err()
}
