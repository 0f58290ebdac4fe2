package enroll

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// Annotations of a registration Secret by which a person steers what the hub does in the member.
const (
	// CordonedAnnotation has the hub move nothing in the member, and bring no further replicas there.
	CordonedAnnotation = clusters.CordonedAnnotation
	// ReadOnlyAnnotation has the hub write nothing in the member.
	ReadOnlyAnnotation = "plimsoll.dev/read-only"
	// DetachedAnnotation gives the member up by force; its value is the reason.
	DetachedAnnotation = clusters.DetachedAnnotation

	// On is the value of an annotation that a person set.
	On = "true"
)

// ForceDetach has the hub give a member up that is gone for good, so that nothing waits for it. An empty reason takes that back.
func ForceDetach(ctx context.Context, r Registration, hub *Context, reason string) (Change, error) {
	return Mark(ctx, r, hub, DetachedAnnotation, reason)
}

// Mark sets an annotation of a registration Secret, and touches nothing else. An empty value removes it.
func Mark(ctx context.Context, r Registration, hub *Context, annotation, value string) (Change, error) {
	if err := r.Validate(); err != nil {
		return Change{}, err
	}
	cluster, err := Connect(SideHub, hub)
	if err != nil {
		return Change{}, err
	}
	secret, found, err := registered(ctx, cluster, r)
	if err != nil {
		return Change{}, err
	}
	return cluster.mark(ctx, secret, found, annotation, value)
}

// SharedSecret is the name of the Secret whose annotations hold for all members.
const SharedSecret = "plimsoll-all-members"

// MarkAll sets an annotation for all members, also for those that register later, or, unless on, removes it. Then it names the
// registrations that keep the annotation for themselves.
func MarkAll(ctx context.Context, namespace string, hub *Context, annotation string, on bool) ([]Change, error) {
	cluster, err := Connect(SideHub, hub)
	if err != nil {
		return nil, err
	}
	shared, err := sharedSecret(namespace, annotation)
	if err != nil {
		return nil, err
	}
	marked, err := cluster.labelled(ctx, shared, namespace, clusters.AllMembersLabel)
	if err != nil {
		return nil, err
	}
	if on {
		change, err := cluster.markShared(ctx, shared, marked, annotation)
		return []Change{change}, err
	}
	var changes []Change
	for i := range marked {
		change, err := cluster.mark(ctx, object{resource: shared.resource, body: &marked[i]}, &marked[i], annotation, "")
		if err != nil {
			return changes, err
		}
		changes = append(changes, change)
	}
	if len(marked) == 0 {
		changes = append(changes, Change{Side: SideHub, Object: shared.String(), Action: Absent})
	}
	members, err := cluster.labelled(ctx, shared, namespace, MemberLabel)
	for i := range members {
		if value, set := members[i].GetAnnotations()[annotation]; set && value != "false" { // which switches nothing on
			changes = append(changes, Change{Side: SideHub, Object: describe(shared.resource, namespace, members[i].GetName()), Action: Kept,
				Note: "it is paused by itself: resume cluster " + members[i].GetName()})
		}
	}
	return changes, err
}

// sharedSecret is the Secret that sets an annotation for all members.
func sharedSecret(namespace, annotation string) (object, error) {
	secret := &corev1.Secret{TypeMeta: typeMeta("v1", "Secret"), ObjectMeta: meta(namespace, SharedSecret), Type: clusters.AllMembersType}
	secret.Labels[clusters.AllMembersLabel] = "true"
	secret.Annotations = map[string]string{annotation: On}
	return of("secrets", secret)
}

// markShared sets an annotation in one of the Secrets that hold for all members; it creates one if there is none.
func (c *Cluster) markShared(ctx context.Context, shared object, marked []unstructured.Unstructured, annotation string) (Change, error) {
	for i := range marked {
		if marked[i].GetAnnotations()[annotation] == On || marked[i].GetName() == SharedSecret {
			return c.mark(ctx, object{resource: shared.resource, body: &marked[i]}, &marked[i], annotation, On)
		}
	}
	change := Change{Side: c.side, Object: shared.String(), Action: Created}
	if _, err := c.client(shared).Create(ctx, shared.body, metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
		return change, c.failed("create "+shared.String(), err)
	}
	return change, nil
}

// labelled returns the Secrets of a namespace in which a label is "true".
func (c *Cluster) labelled(ctx context.Context, like object, namespace, label string) ([]unstructured.Unstructured, error) {
	all, err := c.objects.Resource(like.resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: label + "=true"})
	if err != nil {
		return nil, c.failed("list Secrets with label "+label, err)
	}
	return all.Items, nil
}

// registered returns the registration Secret of a member, as it would be named and as it is.
func registered(ctx context.Context, hub *Cluster, r Registration) (object, *unstructured.Unstructured, error) {
	secret, err := registration(r, "", nil)
	if err != nil {
		return object{}, nil, err
	}
	found, err := hub.find(ctx, secret)
	switch {
	case err != nil:
		return secret, nil, err
	case found == nil:
		return secret, nil, hub.failed("find "+secret.String(), errors.New(r.Name+" is not registered"))
	case found.GetLabels()[MemberLabel] != "true":
		return secret, nil, hub.failed("find "+secret.String(), errors.New("it is not a registration"))
	}
	return secret, found, nil
}

// mark sets an annotation of an object that was found, and of no other of its name; an empty value removes it.
func (c *Cluster) mark(ctx context.Context, o object, found *unstructured.Unstructured, annotation, value string) (Change, error) {
	change := Change{Side: c.side, Object: o.String(), Action: Unchanged}
	was, is := found.GetAnnotations()[annotation]
	if is == (value != "") && was == value {
		return change, nil
	}
	var wanted any
	if value != "" {
		wanted = value
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": string(found.GetUID()), "annotations": map[string]any{annotation: wanted},
	}})
	if err != nil {
		return change, err
	}
	if _, err := c.client(o).Patch(ctx, o.body.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return change, c.failed("annotate "+o.String(), err)
	}
	change.Action = Updated
	return change, nil
}
