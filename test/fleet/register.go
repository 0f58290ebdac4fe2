package fleet

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/confine"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	"github.com/plimsoll-dev/plimsoll/test/kube"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// account is the hub's service account in members.
const account = "plimsoll-hub"

// HubUser is who the hub is in a member, for its audit log.
const HubUser = "system:serviceaccount:" + Namespace + ":" + account

// ByHub passes requests of the hub.
var ByHub = kube.ByUser(HubUser)

// Prepare makes in a member what a registration needs there: an account with the rights that the hub asks for, the policies
// that bind it, and the webhook configuration that it keeps current. It may be called again.
func (m *Member) Prepare(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: account, Namespace: Namespace}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace, Labels: confine.NamespaceLabels(m.confined().Prefixes...)}},
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account}, Rules: rights()},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}},
		},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "delete"}}, // probes
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account}, Verbs: []string{"create"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{clusters.IdentityLease}, Verbs: []string{"get", "patch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}},
		},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: clusters.IdentityLease, Namespace: Namespace}},
		&schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: spot.ProbePriorityClass}, Value: spot.ProbePriority, PreemptionPolicy: ptr.To(corev1.PreemptNever),
		},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhook.ConfigurationName}},
	}
	for _, made := range confine.Policies(m.confined()) {
		objects = append(objects, made.Policy, made.Binding)
	}
	for _, object := range objects {
		if err := m.Client().Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("member %s: make %T %s: %w", m.Name, object, object.GetName(), err)
		}
	}
	return nil
}

// confined is what binds the hub's account in the member: the policies that `plimsoll register` makes. The second prefix is that
// of the project whose workloads the hub can take over.
func (m *Member) confined() confine.Account {
	return confine.Account{Namespace: Namespace, Name: account, Webhook: webhook.ConfigurationName, Prefixes: []string{policy.DefaultPrefix, "spotalis.io"},
		Resources: []module.Resource{webapp.Resource(webapp.Policy{})}}
}

// rights are what the hub says that it needs for placing pods, and the one webhook configuration that it keeps current.
func rights() []rbacv1.PolicyRule {
	needed := append(append(spot.Access(), spot.SignAccess()...), clusters.Access{
		Group: admissionregistrationv1.GroupName, Resource: "mutatingwebhookconfigurations", Name: webhook.ConfigurationName,
		Verbs: []string{"get", "list", "watch", "patch"},
	})
	rules := make([]rbacv1.PolicyRule, 0, len(needed))
	for _, access := range needed {
		rules = append(rules, ruleOf(access))
	}
	return rules
}

func ruleOf(access clusters.Access) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{APIGroups: []string{access.Group}, Resources: []string{access.Resource}, Verbs: access.Verbs}
	if access.Subresource != "" {
		rule.Resources[0] += "/" + access.Subresource
	}
	if access.Name != "" {
		rule.ResourceNames = []string{access.Name}
	}
	return rule
}

// Kubeconfig is what the hub gets of a member: its service account's token, by way of the proxy.
func (m *Member) Kubeconfig(ctx context.Context) ([]byte, error) {
	base, err := m.DirectKubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	return m.Proxy.Kubeconfig(base), nil
}

// DirectKubeconfig is the same without the proxy, for measurements that it would be part of.
func (m *Member) DirectKubeconfig(ctx context.Context) ([]byte, error) {
	return m.Cluster.KubeconfigFor(ctx, HubUser)
}

// Register prepares members and makes their registration Secrets.
func (f *Fleet) Register(ctx context.Context, members ...*Member) error {
	for _, m := range members {
		if err := m.Prepare(ctx); err != nil {
			return err
		}
		kubeconfig, err := m.Kubeconfig(ctx)
		if err != nil {
			return err
		}
		if err := f.Hub.Client().Create(ctx, Registration(m.Name, kubeconfig)); err != nil {
			return fmt.Errorf("register member %s: %w", m.Name, err)
		}
	}
	return nil
}

// Reregister puts another kubeconfig into the registration Secret of a member.
func (f *Fleet) Reregister(ctx context.Context, m *Member, kubeconfig []byte) error {
	var secret corev1.Secret
	if err := f.Hub.Client().Get(ctx, client.ObjectKey{Namespace: Registrations, Name: m.Name}, &secret); err != nil {
		return fmt.Errorf("register member %s: %w", m.Name, err)
	}
	secret.Data = map[string][]byte{clusters.KubeconfigKey: kubeconfig}
	if err := f.Hub.Client().Update(ctx, &secret); err != nil {
		return fmt.Errorf("register member %s: %w", m.Name, err)
	}
	return nil
}

// Registration is a registration Secret.
func Registration(name string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: Registrations, Labels: map[string]string{clusters.MemberLabel: "true"},
			Annotations: map[string]string{clusters.IdentityAnnotation: Namespace},
		},
		Type: clusters.KubeconfigType,
		Data: map[string][]byte{clusters.KubeconfigKey: kubeconfig},
	}
}

// Unregister deletes registration Secrets; one that is not there is no error.
func (f *Fleet) Unregister(ctx context.Context, members ...*Member) error {
	var problems []error
	for _, m := range members {
		problems = append(problems, client.IgnoreNotFound(f.Hub.Client().Delete(ctx, Registration(m.Name, nil))))
	}
	return errors.Join(problems...)
}
