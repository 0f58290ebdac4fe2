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

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// preflight finds out what would fail in the member of that UID, and in the hub cluster, all of it, before anything is changed.
func (e *enrolment) preflight(ctx context.Context, objects []object, uid string) error {
	if err := e.keepType(ctx); err != nil {
		return err
	}
	if err := e.ofNobodyElse(ctx); err != nil {
		return err
	}
	secret, err := registration(e.Registration, uid, nil)
	if err != nil {
		return err
	}
	hubNamespace, err := namespaceObject(e.Namespace, e.namespaceLabels())()
	if err != nil {
		return err
	}
	problems := e.member.try(ctx, objects)
	problems = append(problems, e.hub.try(ctx, []object{hubNamespace, secret})...)
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return e.unique(ctx, secret, uid)
}

// keepType finds out what type a registration Secret has that is there already, which cannot be changed, and whose token is in it.
func (e *enrolment) keepType(ctx context.Context) error {
	found, err := e.hub.typed.CoreV1().Secrets(e.Namespace).Get(ctx, e.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return e.hub.failed("read secret/"+e.Namespace+"/"+e.Name, err)
	}
	e.secretType = found.Type
	e.had, _ = kubeconfig.TokenOf(found.Data[KubeconfigKey])
	return nil
}

// identify reaches both clusters, and returns the member's UID.
func (e *enrolment) identify(ctx context.Context) (string, error) {
	if _, err := e.hub.typed.Discovery().ServerVersion(); err != nil {
		return "", e.hub.failed("get its version", err)
	}
	system, err := e.member.typed.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", e.member.failed("read namespace/kube-system", err)
	}
	return string(system.UID), nil
}

// try applies objects without effect. What would go into a namespace that is not there yet cannot be tried.
func (c *Cluster) try(ctx context.Context, objects []object) []error {
	var problems []error
	for _, o := range objects {
		_, err := c.apply(ctx, o, metav1.DryRunAll)
		if apierrors.IsForbidden(err) {
			err = forbidden(c, o, err)
		} else if apierrors.IsNotFound(err) { // its namespace, or the role of a binding, comes before it
			err = nil
		}
		if err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// forbidden leaves out what Kubernetes repeats when a role is refused: every rule of it.
func forbidden(c *Cluster, o object, err error) error {
	text := err.Error()
	if at := strings.Index(text, "attempting to grant RBAC permissions not currently held"); at >= 0 {
		text = "you may grant only rights that you have, and the hub's role has more; ask a cluster-admin"
		return fmt.Errorf("%s (context %q): apply %s: %s", c.side, c.context, o, text)
	}
	return err
}

// unique makes sure that the name is free or the member's, and the cluster not a member under another name.
func (e *enrolment) unique(ctx context.Context, secret object, uid string) error {
	found, err := e.hub.find(ctx, secret)
	if err != nil {
		return err
	}
	if found != nil && found.GetLabels()[MemberLabel] != "true" {
		return e.hub.failed("create "+secret.String(), errors.New("there is a Secret of that name that is not a registration: choose another name"))
	}
	if found != nil && found.GetAnnotations()[UIDAnnotation] != "" && found.GetAnnotations()[UIDAnnotation] != uid {
		return e.hub.failed("create "+secret.String(), fmt.Errorf("%s is another cluster: unregister that first, or choose another name", e.Name))
	}
	if found != nil {
		if err := e.sameScope(found); err != nil {
			return e.hub.failed("create "+secret.String(), err)
		}
	}
	// Where they may not be listed, the hub finds it out as well, and says so in the member's state.
	others, err := e.otherNames(ctx, secret, uid)
	if err != nil {
		return err
	}
	var taken []string
	for _, other := range others {
		if what, shared := e.shares(other); shared {
			taken = append(taken, what+" is registered as "+other.GetName()+" already")
		}
	}
	if slices.Sort(taken); len(taken) > 0 {
		return e.hub.failed("create "+secret.String(), errors.New(strings.Join(taken, "; ")))
	}
	return nil
}

// otherNames returns the registrations of the cluster under other names; none where they may not be listed.
func (e *enrolment) otherNames(ctx context.Context, secret object, uid string) (others []*unstructured.Unstructured, err error) {
	all, err := e.hub.objects.Resource(secret.resource).Namespace(e.Namespace).List(ctx, metav1.ListOptions{LabelSelector: MemberLabel + "=true"})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, e.hub.failed("list registrations", err)
	}
	for i := range all.Items {
		other := &all.Items[i]
		if other.GetName() != e.Name && other.GetAnnotations()[UIDAnnotation] == uid {
			others = append(others, other)
		}
	}
	return others, nil
}
