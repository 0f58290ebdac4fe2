package enroll

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Registrations of the hub's own cluster once shared the account of the hub itself. What is here takes the rights of a member from it.

// former are the objects of a registration of the hub's own cluster under the names that other members have, but for those that it still has.
func (e *enrolment) former() (objects []object, err error) {
	r := e.Registration
	current, err := memberObjects(r, true)
	if err != nil {
		return nil, err
	}
	r.InCluster = false
	all, err := memberObjects(r, true)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if !slices.ContainsFunc(current, func(other object) bool { return other.String() == o.String() }) {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

// formerlyShared reports whether the registration is one of those that shared the hub's account.
func (e *enrolment) formerlyShared() bool { return e.InCluster && len(e.Namespaces) == 0 }

// removeFormer deletes the former objects, and returns those that somebody else made or uses. It goes on after an error.
func (e *enrolment) removeFormer(ctx context.Context) (kept []Change, err error) {
	objects, err := e.former()
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, o := range slices.Backward(objects) { // rights go before the policies that bind them
		remove := e.member.remove
		if o.resource.Resource == "serviceaccounts" {
			remove = e.removeAccount
		}
		change, err := remove(ctx, o)
		switch {
		case err != nil:
			problems = append(problems, err)
		case change.Action == Kept:
			kept = append(kept, change)
		case change.Action == Deleted:
			e.report(change)
		}
	}
	return kept, errors.Join(problems...)
}

// removeAccount deletes an account, unless pods run as it: the hub may have taken one over that register created.
func (e *enrolment) removeAccount(ctx context.Context, account object) (Change, error) {
	runner, err := e.member.runner(ctx, account.body.GetNamespace(), account.body.GetName())
	if err != nil || runner != "" {
		return Change{Side: SideMember, Object: account.String(), Action: Kept, Note: runner + " runs as it"}, err
	}
	return e.member.remove(ctx, account)
}

// leave takes the rights of a member from the hub's account once the registration has a token of its own account, and returns warnings about
// what remains.
func (e *enrolment) leave(ctx context.Context) (warnings []string, err error) {
	if !e.formerlyShared() {
		return nil, nil
	}
	kept, err := e.removeFormer(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, change := range kept {
		if !strings.HasPrefix(change.Object, "serviceaccount/") {
			names = append(names, change.Object)
		} else if e.had.Namespace == e.MemberNamespace && e.had.Account == Account {
			warnings = append(warnings, e.exposed())
		}
	}
	if len(names) > 0 {
		warnings = append(warnings, "plimsoll did not create "+strings.Join(names, ", ")+", which are for members that are other clusters, and are about the hub's own account here: "+
			"delete them where they come from")
	}
	for i := range e.Kinds {
		more, err := e.rebind(ctx, e.Kinds[i])
		if warnings = append(warnings, more...); err != nil {
			return warnings, err
		}
	}
	return warnings, nil
}

// exposed says what the registration's token was good for until now, and how it becomes invalid.
func (e *enrolment) exposed() string {
	until := "until its Secret is deleted"
	if !e.had.Expires.IsZero() {
		until = "until " + e.had.Expires.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s had a token of the hub's own account, serviceaccount/%s/%s, which reads the hub's keys; it has one of %s now. The old one is valid %s: "+
		"if others could read the registration, make it invalid and replace the keys (docs/upgrade.md)", e.Name, e.had.Namespace, e.had.Account, InClusterAccount, until)
}

// rebind gives the rights for a kind, which [Install] gave to the hub's own account, to that of the registration.
func (e *enrolment) rebind(ctx context.Context, kind Kind) (warnings []string, err error) {
	granted := Installed{Kind: kind, Namespace: e.MemberNamespace, account: InClusterAccount}
	roles, err := e.member.secretRoles(ctx, kind.role())
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	for _, o := range roles {
		if o.resource.Resource == "rolebindings" && !granted.withKeys(o.body.GetNamespace()) {
			granted.Secrets = append(granted.Secrets, o.body.GetNamespace())
		}
	}
	objects, err := granted.objects(nil)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		found, err := e.member.find(ctx, o)
		if err != nil {
			return warnings, err
		}
		if found == nil || !binds(found, e.MemberNamespace, Account) {
			continue
		}
		change, err := e.member.apply(ctx, o)
		if err := e.applied(change, err); err != nil {
			return warnings, err
		}
		if change.Action == Kept {
			warnings = append(warnings, fmt.Sprintf("plimsoll did not create %s, which binds the hub's own account: let it bind serviceaccount/%s/%s",
				change.Object, e.MemberNamespace, InClusterAccount))
		}
	}
	everywhere, err := e.readsSecrets(ctx, kind.role())
	if everywhere {
		warnings = append(warnings, fmt.Sprintf("clusterrole/%s lets the token of %s read every Secret, the hub's keys among them: "+
			"name namespaces with `plimsoll %s install --secrets`", kind.role(), e.Name, kind.Plural))
	}
	return warnings, err
}

// binds reports whether an object is a binding of an account.
func binds(binding *unstructured.Unstructured, namespace, account string) bool {
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects") // nothing else has some
	return slices.ContainsFunc(subjects, func(subject any) bool {
		is, ok := subject.(map[string]any)
		return ok && is["kind"] == rbacv1.ServiceAccountKind && is["namespace"] == namespace && is["name"] == account
	})
}

// readsSecrets reports whether a ClusterRole is about Secrets.
func (e *enrolment) readsSecrets(ctx context.Context, name string) (bool, error) {
	role, err := e.member.typed.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, e.member.failed("read clusterrole/"+name, err)
	}
	return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "secrets") }), nil
}
