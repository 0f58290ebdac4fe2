package enroll

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// Unregister undoes [Register]: first in the hub cluster, so that the hub releases the member, then in the member, unless
// that is nil. What somebody else made stays, and so does what is not there. Pods stay where they are.
func Unregister(ctx context.Context, r Registration, member, hub *Context, report func(Change)) error {
	if err := r.Validate(); err != nil {
		return err
	}
	e := enrolment{Registration: r, report: report}
	var err error
	if e.hub, err = Connect(SideHub, hub); err != nil {
		return err
	}
	if member != nil { // before anything is deleted, so that a typing mistake costs nothing
		if e.member, err = Connect(SideMember, member); err != nil {
			return err
		}
		if err := e.sameCluster(ctx); err != nil {
			return err
		}
	}
	if err := e.scopeOf(ctx); err != nil {
		return err
	}
	if err := e.applied(e.withdraw(ctx)); err != nil {
		return err
	}
	if e.member == nil {
		return nil
	}
	for _, kind := range r.Kinds {
		if left := e.member.left(ctx, kind); left != "" && len(e.Namespaces) == 0 {
			defer report(Change{Side: SideMember, Object: kind.Plural, Action: Kept, Note: left})
		}
	}
	return errors.Join(e.clearFormer(ctx), e.clear(ctx))
}

// sameCluster makes sure that the member that is cleared is the one that was registered, and finds out whether that is the hub's own cluster.
func (e *enrolment) sameCluster(ctx context.Context) error {
	system, err := e.member.typed.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return e.member.failed("read namespace/kube-system", err)
	}
	if e.InCluster, err = e.ownCluster(ctx, string(system.UID)); err != nil {
		return err
	}
	secret, err := registration(e.Registration, "", nil)
	if err != nil {
		return err
	}
	found, err := e.hub.find(ctx, secret)
	if err != nil {
		return err
	}
	if found == nil {
		return e.nobodyElses(ctx, secret, string(system.UID))
	}
	if uid := found.GetAnnotations()[UIDAnnotation]; uid != "" && uid != string(system.UID) {
		return e.member.failed("unregister "+e.Name, errors.New("the registration is for another cluster than this context: nothing was changed"))
	}
	return nil
}

// nobodyElses makes sure, where there is no registration of that name, that what is in the member is not that of another
// name's. Objects of tenants carry their names.
func (e *enrolment) nobodyElses(ctx context.Context, secret object, uid string) error {
	others, err := e.otherNames(ctx, secret, uid)
	if err != nil {
		return err
	}
	for _, other := range others {
		if registeredNamespaces(other) == nil {
			return e.hub.failed("unregister "+e.Name, fmt.Errorf("there is no such registration, and the cluster is registered as %s: nothing was changed", other.GetName()))
		}
	}
	return nil
}

// withdraw deletes the registration Secret, whoever made it.
func (e *enrolment) withdraw(ctx context.Context) (Change, error) {
	secret, err := registration(e.Registration, "", nil)
	if err != nil {
		return Change{}, err
	}
	change := Change{Side: SideHub, Object: secret.String(), Action: Absent}
	found, err := e.hub.find(ctx, secret)
	if err != nil || found == nil {
		return change, err
	}
	if found.GetLabels()[MemberLabel] != "true" {
		return change, e.hub.failed("delete "+secret.String(), errors.New("it is not a registration"))
	}
	uid := found.GetUID()
	err = e.hub.client(secret).Delete(ctx, e.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return change, e.hub.failed("delete "+secret.String(), err)
	}
	change.Action = Deleted
	return change, nil
}

// clearFormer deletes what a registration of the hub's own cluster has left under former names.
func (e *enrolment) clearFormer(ctx context.Context) error {
	if !e.formerlyShared() {
		return nil
	}
	kept, err := e.removeFormer(ctx)
	for _, change := range kept {
		e.report(change)
	}
	return err
}

// clear deletes what was made in the member, the last first. It goes on after an error, to leave as little as it can.
func (e *enrolment) clear(ctx context.Context) error {
	objects, err := memberObjects(e.Registration, true)
	if err != nil {
		return err
	}
	var problems []error
	for _, o := range slices.Backward(objects[1:]) {
		if o.resource.Resource == "leases" {
			problems = append(problems, e.applied(e.removeIdentity(ctx, o)))
			continue
		}
		problems = append(problems, e.applied(e.member.remove(ctx, o)))
	}
	problems = append(problems, e.applied(e.removeNamespace(ctx, objects[0])))
	return errors.Join(problems...)
}

// removeNamespace deletes the namespace when there is nothing in it but what Kubernetes puts into each.
func (e *enrolment) removeNamespace(ctx context.Context, namespace object) (Change, error) {
	change := Change{Side: SideMember, Object: namespace.String()}
	found, err := e.member.find(ctx, namespace)
	if err != nil || found == nil || !ours(found) {
		return e.member.remove(ctx, namespace)
	}
	inhabitant, err := e.inhabitant(ctx)
	if err != nil {
		return change, e.member.failed("list the objects in "+namespace.String(), err)
	}
	if inhabitant != "" {
		change.Action, change.Note = Kept, fmt.Sprintf("%s is in it", inhabitant)
		return change, nil
	}
	return e.member.remove(ctx, namespace)
}

// inhabitant names something that lives in the member's namespace; "": nothing does.
func (e *enrolment) inhabitant(ctx context.Context) (string, error) {
	lists, err := e.member.typed.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return "", err
	}
	clients, err := metadata.NewForConfig(e.member.config)
	if err != nil {
		return "", err
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return "", err
		}
		for _, resource := range list.APIResources {
			kind := version.WithResource(resource.Name)
			all, err := clients.Resource(kind).Namespace(e.MemberNamespace).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue
			}
			if err != nil {
				return "", fmt.Errorf("list %s: %w", resource.Name, err)
			}
			for i := range all.Items {
				if o := &all.Items[i]; !ofEveryNamespace(kind.Resource, o.Name) && o.DeletionTimestamp == nil {
					return describe(kind, "", o.Name), nil
				}
			}
		}
	}
	return "", nil
}

// ofEveryNamespace reports what Kubernetes makes in each namespace, and what says of others what they did.
func ofEveryNamespace(resource, name string) bool {
	return resource == "events" || resource == "serviceaccounts" && name == "default" || resource == "configmaps" && name == "kube-root-ca.crt"
}
