package enroll

import (
	"context"
	"encoding/json"
	"errors"

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

	// On is the value of an annotation that a person set for one member, OnForAll of one set for all of them.
	On       = "true"
	OnForAll = "hub"
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

// MarkAll sets an annotation of all registrations that do not have it to [OnForAll], or, unless on, removes it from those where it is that.
func MarkAll(ctx context.Context, namespace string, hub *Context, annotation string, on bool) ([]Change, error) {
	cluster, err := Connect(SideHub, hub)
	if err != nil {
		return nil, err
	}
	secret, err := registration(Registration{Namespace: namespace}, "", nil)
	if err != nil {
		return nil, err
	}
	all, err := cluster.objects.Resource(secret.resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: MemberLabel + "=true"})
	if err != nil {
		return nil, cluster.failed("list registrations", err)
	}
	var changes []Change
	for i := range all.Items {
		found := &all.Items[i]
		one := object{resource: secret.resource, body: found}
		value, set := found.GetAnnotations()[annotation]
		if set == on || set && value != OnForAll {
			change := Change{Side: SideHub, Object: one.String(), Action: Unchanged}
			if set && !on {
				change.Action, change.Note = Kept, "it is paused by itself: resume cluster "+found.GetName()
			}
			changes = append(changes, change)
			continue
		}
		wanted := ""
		if on {
			wanted = OnForAll
		}
		change, err := cluster.mark(ctx, one, found, annotation, wanted)
		if err != nil {
			return changes, err
		}
		changes = append(changes, change)
	}
	return changes, nil
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
		return secret, nil, hub.failed("find "+secret.String(), errors.New("it is no registration"))
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
