package enroll

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// shownObjects is how many objects of the kind an error names.
const shownObjects = 5

// Uninstall undoes [Install], in every namespace. While there are objects of the kind it refuses and names some, because deleting the definition
// would delete them and what they consist of. What somebody else created stays.
func Uninstall(ctx context.Context, w Installed, member *Context, report func(Change)) error {
	if err := w.validate(); err != nil {
		return err
	}
	c, err := Connect(SideMember, member)
	if err != nil {
		return err
	}
	definition, err := c.definition(ctx, w.Definition)
	if err != nil {
		return err
	}
	if definition != nil {
		if err := c.noneLeft(ctx, w.Kind, definition); err != nil {
			return err
		}
	}
	objects, err := w.objects(nil)
	if err != nil {
		return err
	}
	inNamespaces, err := c.secretRoles(ctx, w.role())
	if err != nil {
		return err
	}
	// The definition is first among the objects and goes last: without the rest the hub leaves it alone.
	var problems []error
	for _, o := range slices.Backward(append(objects, inNamespaces...)) {
		change, err := c.remove(ctx, o)
		if err == nil {
			report(change)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// noneLeft returns an error that names objects of a kind in the member, if it has any. They are read as metadata in the stored version, for which
// no converter has to answer.
func (c *Cluster) noneLeft(ctx context.Context, kind Kind, definition *apiextensionsv1.CustomResourceDefinition) error {
	clients, err := metadata.NewForConfig(c.config)
	if err != nil {
		return c.failed("create a client", err)
	}
	for _, version := range definition.Spec.Versions {
		if !version.Storage || !version.Served {
			continue
		}
		resource := schema.GroupVersionResource{Group: definition.Spec.Group, Version: version.Name, Resource: definition.Spec.Names.Plural}
		found, err := clients.Resource(resource).List(ctx, metav1.ListOptions{Limit: shownObjects})
		if apierrors.IsNotFound(err) {
			return nil // not served yet, or not any more
		}
		if err != nil {
			return c.failed("list "+kind.Title, err)
		}
		if len(found.Items) > 0 {
			return c.failed("uninstall", existing(kind, found))
		}
	}
	return nil
}

func existing(kind Kind, found *metav1.PartialObjectMetadataList) error {
	names := ""
	for i := range found.Items {
		names += fmt.Sprintf(" %s/%s", found.Items[i].Namespace, found.Items[i].Name)
	}
	if found.Continue != "" {
		names += " and others"
	}
	return fmt.Errorf("there are %s:%s. Deleting their definition would delete them: delete them first; nothing was changed", kind.Title, names)
}

// secretRoles are the roles and bindings that [Install] created for Secrets, in whatever namespaces that was.
func (c *Cluster) secretRoles(ctx context.Context, role string) (objects []object, err error) {
	selector := metav1.ListOptions{LabelSelector: managedByLabel + "=" + fieldManager, FieldSelector: "metadata.name=" + role}
	roles, err := c.typed.RbacV1().Roles(metav1.NamespaceAll).List(ctx, selector)
	if err != nil {
		return nil, c.failed("list roles", err)
	}
	bindings, err := c.typed.RbacV1().RoleBindings(metav1.NamespaceAll).List(ctx, selector)
	if err != nil {
		return nil, c.failed("list role bindings", err)
	}
	for i := range roles.Items {
		one, err := of("roles", &rbacv1.Role{TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "Role"), ObjectMeta: meta(roles.Items[i].Namespace, role)})
		if err != nil {
			return nil, err
		}
		objects = append(objects, one)
	}
	for i := range bindings.Items {
		one, err := of("rolebindings", &rbacv1.RoleBinding{TypeMeta: typeMeta("rbac.authorization.k8s.io/v1", "RoleBinding"), ObjectMeta: meta(bindings.Items[i].Namespace, role)})
		if err != nil {
			return nil, err
		}
		objects = append(objects, one)
	}
	return objects, nil
}

// left says what unregistering leaves in the member for a kind; empty: nothing.
func (c *Cluster) left(ctx context.Context, kind Kind) string {
	definition, err := c.definition(ctx, kind.Definition)
	if err != nil || definition == nil {
		return "" // who may not read it cannot delete it either
	}
	return "customresourcedefinition/" + definition.Name + " stays, and no hub converts its versions any more: `plimsoll " +
		kind.Plural + " uninstall` deletes it"
}
