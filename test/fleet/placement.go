package fleet

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/placing"
)

// AllowPlacement gives the hub's account in the member what fleet placement needs there.
func (m *Member) AllowPlacement(ctx context.Context) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "plimsoll-fleet"}}
	for _, access := range placing.Access() {
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
