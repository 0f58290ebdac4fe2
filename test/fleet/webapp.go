package fleet

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/crd"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// definitions is a client of the member that knows definitions as well.
func (m *Member) definitions() (client.Client, error) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	c, err := client.New(m.Cluster.Config(), client.Options{Scheme: known})
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", m.Name, err)
	}
	return c, nil
}

// AsksHub reports whether a hub has written into the member where it is asked about pods and WebApps, and where WebApps are converted.
func (m *Member) AsksHub(ctx context.Context) (bool, error) {
	c, err := m.definitions()
	if err != nil {
		return false, err
	}
	var pods admissionregistrationv1.MutatingWebhookConfiguration
	var webApps admissionregistrationv1.ValidatingWebhookConfiguration
	var definition apiextensionsv1.CustomResourceDefinition
	for object, name := range map[client.Object]string{&pods: webhook.ConfigurationName, &webApps: webhook.ConfigurationName, &definition: crd.Name} {
		if err := c.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
			return false, fmt.Errorf("member %s: %w", m.Name, err)
		}
	}
	conversion := definition.Spec.Conversion
	return len(pods.Webhooks) > 0 && len(webApps.Webhooks) > 0 && conversion != nil && conversion.Webhook != nil, nil
}

// InstallWebApps makes in a member what `plimsoll webapps install` does. It may be called again.
func (m *Member) InstallWebApps(ctx context.Context) error {
	c, err := m.definitions()
	if err != nil {
		return err
	}
	keep := []string{"get", "list", "watch", "patch"}
	needed := append(webapp.Rights(),
		clusters.Access{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions", Name: crd.Name, Verbs: keep},
		clusters.Access{Group: admissionregistrationv1.GroupName, Resource: "validatingwebhookconfigurations", Name: webhook.ConfigurationName, Verbs: keep})
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account + "-webapps"}}
	for _, access := range needed {
		role.Rules = append(role.Rules, ruleOf(access))
	}
	for _, object := range []client.Object{
		crd.New(), role,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhook.ConfigurationName}},
	} {
		if err := c.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("member %s: make %T %s: %w", m.Name, object, object.GetName(), err)
		}
	}
	return nil
}
