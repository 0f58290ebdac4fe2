package enroll

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
)

// A tenant is a member that is registered for named namespaces of a cluster. Everything that is made for it carries the
// member's name, so that several tenants, and the cluster as a whole, do not share anything.

// names are those of the objects in a member that do not belong to the person who registers.
type names struct{ account, token, role, webhook string }

func (r Registration) names() names {
	switch {
	case len(r.Namespaces) == 0 && r.InCluster:
		return names{account: InClusterAccount, token: InClusterAccount + "-token", role: InClusterAccount, webhook: WebhookConfiguration}
	case len(r.Namespaces) == 0:
		return names{account: Account, token: TokenSecret, role: Role, webhook: WebhookConfiguration}
	}
	own := func(name string) string { return name + "-" + r.Name }
	return names{account: own(Account), token: own(TokenSecret), role: own(Role), webhook: own(WebhookConfiguration)}
}

// registeredNamespaces are those of a registration Secret; nil: it is for the whole cluster.
func registeredNamespaces(secret *unstructured.Unstructured) []string {
	value, restricted := secret.GetAnnotations()[NamespacesAnnotation]
	if !restricted {
		return nil
	}
	namespaces := strings.Split(value, ",")
	for i := range namespaces {
		namespaces[i] = strings.TrimSpace(namespaces[i])
	}
	return namespaces
}

// sameScope refuses to turn a registration for namespaces into one for the cluster, or the other way round: the rights of
// the former would stay behind.
func (e *enrolment) sameScope(found *unstructured.Unstructured) error {
	before := registeredNamespaces(found)
	switch {
	case before == nil && len(e.Namespaces) > 0:
		return fmt.Errorf("%s is registered for the whole cluster: unregister it first, or choose another name", e.Name)
	case before != nil && len(e.Namespaces) == 0:
		return fmt.Errorf("%s is registered for the namespaces %s only: set --tenant-namespaces, or unregister it first", e.Name, strings.Join(before, ","))
	}
	return nil
}

// shares reports whether another registration of the same cluster claims what this one does, and what that is.
func (e *enrolment) shares(other *unstructured.Unstructured) (what string, shared bool) {
	theirs := registeredNamespaces(other)
	switch {
	case theirs == nil && len(e.Namespaces) == 0:
		return "that cluster", true
	case theirs == nil:
		return "that cluster, as a whole,", true
	case len(e.Namespaces) == 0:
		return "a part of that cluster", true
	}
	for _, namespace := range e.Namespaces {
		if slices.Contains(theirs, namespace) {
			return "namespace " + namespace + " of that cluster", true
		}
	}
	return "", false
}

// retire takes back the roles in namespaces that a tenant was registered for and is no longer.
func (e *enrolment) retire(ctx context.Context) error {
	if len(e.Namespaces) == 0 {
		return nil
	}
	former, err := e.grantedNamespaces(ctx)
	if err != nil {
		return err
	}
	for _, namespace := range former {
		if slices.Contains(e.Namespaces, namespace) {
			continue
		}
		for _, o := range slices.Backward(grants(e.Registration, namespace)) {
			made, err := o()
			if err != nil {
				return err
			}
			if err := e.applied(e.member.remove(ctx, made)); err != nil {
				return err
			}
		}
	}
	return nil
}

// grantedNamespaces are those in which the member has a role of this tenant.
func (e *enrolment) grantedNamespaces(ctx context.Context) ([]string, error) {
	roles, err := e.member.typed.RbacV1().Roles(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", Role+"-"+e.Name).String(),
		LabelSelector: managedByLabel + "=" + fieldManager,
	})
	if err != nil {
		return nil, e.member.failed("list the roles "+Role+"-"+e.Name, err)
	}
	var namespaces []string
	for i := range roles.Items {
		namespaces = append(namespaces, roles.Items[i].Namespace)
	}
	return namespaces, nil
}

// scopeOf finds out for which namespaces a name is registered: as its Secret says or, when that is gone already, as the
// roles in the member do.
func (e *enrolment) scopeOf(ctx context.Context) error {
	secret, err := registration(e.Registration, "", nil)
	if err != nil {
		return err
	}
	found, err := e.hub.find(ctx, secret)
	if err != nil {
		return err
	}
	if found != nil {
		if e.Namespaces = registeredNamespaces(found); e.Namespaces == nil || e.member == nil {
			return nil
		}
	}
	if e.member == nil {
		return nil
	}
	granted, err := e.grantedNamespaces(ctx)
	if apierrors.IsForbidden(err) {
		return nil
	}
	e.Namespaces = append(slices.Clip(e.Namespaces), granted...)
	slices.Sort(e.Namespaces)
	e.Namespaces = slices.Compact(e.Namespaces)
	return err
}

// validateNamespaces says what is wrong with the namespaces of a tenant.
func (r Registration) validateNamespaces() error {
	for i, namespace := range r.Namespaces {
		if err := validLabel("namespace", namespace); err != nil {
			return err
		}
		if slices.Contains(r.Namespaces[:i], namespace) {
			return fmt.Errorf("namespace %q: specified twice", namespace)
		}
	}
	if len(r.Namespaces) > 0 && len(r.Name) > maxTenantName {
		return errors.New("name " + r.Name + ": a member for named namespaces has names made of its own, which may have at most " +
			fmt.Sprint(maxTenantName) + " characters")
	}
	return nil
}

// maxTenantName leaves room for what is put before it in the name of a service account, which becomes a label value.
const maxTenantName = 63 - len(TokenSecret) - 1
