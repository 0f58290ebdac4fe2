package fleet

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/crd"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/placing"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
)

// AllowPlacement gives the hub's account in the member what fleet placement needs there.
func (m *Member) AllowPlacement(ctx context.Context) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "plimsoll-fleet"}}
	for _, access := range placing.Access([]module.Resource{webapp.Resource(webapp.Policy{})}) {
		resource := access.Resource
		if access.Subresource != "" {
			resource += "/" + access.Subresource
		}
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{access.Group}, Resources: []string{resource}, Verbs: access.Verbs})
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: "plimsoll-hub"}},
	}
	return errors.Join(m.Client().Create(ctx, role), m.Client().Create(ctx, binding))
}

// PreparePlacements makes the hub cluster know FleetPlacements, and lets the hub place them in the members. It returns a client of the
// hub cluster that knows them as well.
func (f *Fleet) PreparePlacements(ctx context.Context, members ...*Member) (client.Client, error) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	k, err := client.New(f.Hub.Config(), client.Options{Scheme: known})
	if err != nil {
		return nil, fmt.Errorf("prepare fleet placements: %w", err)
	}
	if err := k.Create(ctx, crd.New()); err != nil {
		return nil, fmt.Errorf("prepare fleet placements: %w", err)
	}
	for _, m := range members {
		if err := m.AllowPlacement(ctx); err != nil {
			return nil, fmt.Errorf("prepare fleet placements: member %s: %w", m.Name, err)
		}
	}
	return k, Await(ctx, "the hub cluster to know FleetPlacements", func(ctx context.Context) (bool, error) {
		return true, k.List(ctx, &v1alpha1.FleetPlacementList{})
	})
}
