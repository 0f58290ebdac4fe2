package enroll

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

func (c *Cluster) client(o object) dynamic.ResourceInterface {
	if namespace := o.body.GetNamespace(); namespace != "" {
		return c.objects.Resource(o.resource).Namespace(namespace)
	}
	return c.objects.Resource(o.resource)
}

// find returns the object as it is in the cluster; nil: it is not there.
func (c *Cluster) find(ctx context.Context, o object) (*unstructured.Unstructured, error) {
	found, err := c.client(o).Get(ctx, o.body.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.failed("read "+o.String(), err)
	}
	return found, nil
}

// ours reports whether an object was made by this tool.
func ours(o *unstructured.Unstructured) bool { return o.GetLabels()[managedByLabel] == fieldManager }

// apply brings an object into the cluster. What somebody else made is used as it is.
func (c *Cluster) apply(ctx context.Context, o object, dryRun ...string) (Change, error) {
	change := Change{Side: c.side, Object: o.String()}
	before, err := c.find(ctx, o)
	if apierrors.IsForbidden(err) && o.body.GetNamespace() == "" && o.body.GetKind() == "Namespace" {
		change.Action, change.Note = Kept, "you may not read it; assuming that it exists"
		return change, nil
	}
	if err != nil {
		return change, err
	}
	if before != nil && !ours(before) && o.body.GetLabels()[MemberLabel] == "" {
		change.Action, change.Note = Kept, kept(before)
		if c.outdated(ctx, o, before) {
			change.Note = outdated
		}
		return change, nil
	}
	after, err := c.client(o).Apply(ctx, o.body.GetName(), o.body, metav1.ApplyOptions{FieldManager: fieldManager, Force: true, DryRun: dryRun})
	switch {
	case older(o, err):
		change.Action, change.Note = Skipped, tooOld
	case err != nil:
		return change, c.failed("apply "+o.String(), err)
	case before == nil:
		change.Action = Created
	case before.GetResourceVersion() != after.GetResourceVersion():
		change.Action = Updated
	default:
		change.Action = Unchanged
	}
	if err == nil {
		change.Version = after.GetResourceVersion()
	}
	return change, nil
}

// outdated reports whether a policy, or its binding, that somebody else made differs from what would be applied.
func (c *Cluster) outdated(ctx context.Context, o object, before *unstructured.Unstructured) bool {
	if o.resource.Resource != policyResource && o.resource.Resource != policyBindingResource {
		return false
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true, DryRun: []string{metav1.DryRunAll}}
	after, err := c.client(o).Apply(ctx, o.body.GetName(), o.body, options)
	return err == nil && !equality.Semantic.DeepEqual(before.Object["spec"], after.Object["spec"])
}

// remove deletes an object that this tool made.
func (c *Cluster) remove(ctx context.Context, o object) (Change, error) {
	change := Change{Side: c.side, Object: o.String(), Action: Absent}
	found, err := c.find(ctx, o)
	if err != nil || found == nil {
		return change, err
	}
	if !ours(found) {
		change.Action, change.Note = Kept, "plimsoll did not create it"
		return change, nil
	}
	uid := found.GetUID()
	err = c.client(o).Delete(ctx, o.body.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return change, c.failed("delete "+o.String(), err)
	}
	change.Action = Deleted
	return change, nil
}
