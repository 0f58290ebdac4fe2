package enroll

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
)

// Kind is a custom kind that a hub keeps in members, and what it may do about it there.
type Kind struct {
	module.Resource
	// Rights are those in every namespace; SecretRights those where its owner allows them.
	Rights, SecretRights []clusters.Access
}

// role is the ClusterRole that lets the hub keep the kind in a member, and its binding.
func (k Kind) role() string { return "plimsoll-" + k.Plural }

// AllNamespaces among [Installed.Secrets] represents every namespace.
const AllNamespaces = "*"

// Installed says what is installed of a kind in a member.
type Installed struct {
	Kind
	// Namespace is that of the hub's account in the member.
	Namespace string
	// Secrets are the namespaces in which the hub may read Secrets; [AllNamespaces] alone: in all of them.
	Secrets []string
	// account is the hub's in the member; "": [Account].
	account string
}

func (w Installed) validate() error {
	if err := validLabel("namespace", w.Namespace); err != nil {
		return err
	}
	for _, namespace := range w.Secrets {
		if namespace == AllNamespaces && len(w.Secrets) == 1 {
			continue
		}
		if err := validLabel("namespace of Secrets", namespace); err != nil {
			return err
		}
	}
	return nil
}

// Install has a member know a kind: its definition, what the hub may do about it there, and the configuration by which
// the member asks the hub what may be stored. What somebody else made is used as it is, and a definition that must not be
// replaced is an error.
func Install(ctx context.Context, w Installed, member *Context, report func(Change)) error {
	if err := w.validate(); err != nil {
		return err
	}
	c, err := Connect(SideMember, member)
	if err != nil {
		return err
	}
	if err := w.findAccount(ctx, c); err != nil {
		return err
	}
	there, err := c.definition(ctx, w.Definition)
	if err != nil {
		return err
	}
	if there != nil {
		if refusal := w.Definition.Refusal(there); refusal != "" {
			return c.failed("replace customresourcedefinition/"+w.Definition.Name(), errors.New(refusal))
		}
	}
	objects, err := w.objects(there)
	if err != nil {
		return err
	}
	if problems := c.try(ctx, objects); len(problems) > 0 {
		return errors.Join(problems...)
	}
	for _, o := range objects {
		if there != nil && o.body.GetName() == w.Definition.Name() && w.Definition.Differs(there, w.Definition.ForMember(there).Spec.Conversion) == "" {
			report(Change{Side: SideMember, Object: o.String(), Action: Unchanged})
			continue // applying it would change nothing but who keeps its fields
		}
		change, err := c.apply(ctx, o)
		if err != nil {
			return err
		}
		report(change)
	}
	return nil
}

// findAccount finds out as whom the hub is in the member. In its own cluster it may not read Secrets where its keys and registrations are.
func (w *Installed) findAccount(ctx context.Context, member *Cluster) error {
	account, err := serviceAccount(w.Namespace, InClusterAccount)
	if err != nil {
		return err
	}
	found, err := member.find(ctx, account)
	switch {
	case apierrors.IsForbidden(err) || err == nil && (found == nil || !ours(found)):
		return nil
	case err != nil:
		return err
	}
	w.account = InClusterAccount
	for _, namespace := range w.Secrets {
		if namespace == AllNamespaces || w.withKeys(namespace) {
			return fmt.Errorf("namespace of Secrets %q: this is the hub's own cluster, where the hub's keys and registrations would be among them: name other namespaces", namespace)
		}
	}
	return nil
}

// withKeys reports whether a namespace of the hub's own cluster has the hub's keys or the registrations, where nothing else was said.
func (w *Installed) withKeys(namespace string) bool {
	return slices.Contains([]string{w.Namespace, DefaultNamespace, RegistrationNamespace}, namespace)
}

// RenderInstall returns what [Install] would apply to a member without any of it, as YAML. It talks to no cluster.
func RenderInstall(w Installed) ([]byte, error) {
	if err := w.validate(); err != nil {
		return nil, err
	}
	objects, err := w.objects(nil)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, o := range objects {
		content, err := yaml.Marshal(o.body.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", o, err)
		}
		fmt.Fprintf(&text, "---\n%s", content)
	}
	return text.Bytes(), nil
}

// definition is a definition as it is in the cluster; nil: there is none.
func (c *Cluster) definition(ctx context.Context, of *module.Definition) (*apiextensionsv1.CustomResourceDefinition, error) {
	wanted, err := definitionObject(of, nil)()
	if err != nil {
		return nil, err
	}
	found, err := c.find(ctx, wanted)
	if err != nil || found == nil {
		return nil, err
	}
	there := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, there); err != nil {
		return nil, c.failed("read "+wanted.String(), err)
	}
	return there, nil
}

func definitionObject(kind *module.Definition, there *apiextensionsv1.CustomResourceDefinition) func() (object, error) {
	return func() (object, error) {
		definition := kind.ForMember(there)
		definition.TypeMeta = typeMeta("apiextensions.k8s.io/v1", "CustomResourceDefinition")
		definition.Labels = map[string]string{managedByLabel: fieldManager}
		return of("customresourcedefinitions", definition)
	}
}

// objects are what is made in a member, in this order.
func (w Installed) objects(there *apiextensionsv1.CustomResourceDefinition) ([]object, error) {
	rules := w.rules()
	everywhere := slices.Contains(w.Secrets, AllNamespaces)
	if everywhere {
		rules = append(rules, rulesOf(w.SecretRights)...)
	}
	makers := []func() (object, error){
		definitionObject(w.Definition, there),
		func() (object, error) {
			return of("clusterroles", &rbacv1.ClusterRole{
				TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "ClusterRole"), ObjectMeta: meta("", w.role()), Rules: rules,
			})
		},
		func() (object, error) {
			return of("clusterrolebindings", &rbacv1.ClusterRoleBinding{
				TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"), ObjectMeta: meta("", w.role()),
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.role()},
				Subjects: w.subjects(),
			})
		},
		emptyValidation,
	}
	if !everywhere {
		for _, namespace := range w.Secrets {
			makers = append(makers, roleIn(namespace, w.role(), rulesOf(w.SecretRights), w.subjects())...)
		}
	}
	return collect(makers...)
}

// emptyValidation is without the field webhooks, so that applying it again takes nothing away from what the hub wrote.
func emptyValidation() (object, error) {
	return of("validatingwebhookconfigurations", &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   typeMeta("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
		ObjectMeta: metav1.ObjectMeta{Name: WebhookConfiguration, Labels: map[string]string{managedByLabel: fieldManager}},
	})
}

func (w Installed) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: cmp.Or(w.account, Account)}}
}

func rulesOf(rights []clusters.Access) (rules []rbacv1.PolicyRule) {
	for _, right := range rights {
		resource := right.Resource
		if right.Subresource != "" {
			resource += "/" + right.Subresource
		}
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{right.Group}, Resources: []string{resource}, Verbs: right.Verbs})
	}
	return rules
}

// rules are what the hub may do about the kind, in every namespace.
func (w Installed) rules() []rbacv1.PolicyRule {
	// The one definition, and the one configuration. The hub can neither make nor delete any.
	return append(rulesOf(w.Rights), keepRules(w.Definition.Name())...)
}
