package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apply makes objects in the hub cluster; those that are there stay.
func (s *apiSite) apply(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := s.hub.Client().Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("make %T %s: %v", o, o.GetName(), err)
		}
	}
}

func (s *apiSite) account(t *testing.T, name string) {
	t.Helper()
	s.apply(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: apiNamespace, Name: name}})
}

// grant gives an account rights in the hub cluster.
func (s *apiSite) grant(t *testing.T, account string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	s.apply(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account}, Rules: rules})
	s.bind(t, account, account, account)
}

func (s *apiSite) bind(t *testing.T, name, account, role string) {
	t.Helper()
	s.apply(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: apiNamespace, Name: account}},
	})
}

func (s *apiSite) token(t *testing.T, account string, audiences ...string) string {
	t.Helper()
	token, err := s.hub.Token(t.Context(), apiNamespace, account, audiences...)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
