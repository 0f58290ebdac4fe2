package enroll

import (
	"context"
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DetachedAnnotation on a registration Secret gives its member up by force; its value is the reason.
const DetachedAnnotation = "plimsoll.dev/force-detached"

// ForceDetach has the hub give a member up that is gone for good, so that nothing waits for it: it annotates the
// registration Secret, and touches nothing else. An empty reason takes that back.
func ForceDetach(ctx context.Context, r Registration, hub *Context, reason string) (Change, error) {
	if err := r.Validate(); err != nil {
		return Change{}, err
	}
	cluster, err := Connect(SideHub, hub)
	if err != nil {
		return Change{}, err
	}
	secret, err := registration(r, "", nil)
	if err != nil {
		return Change{}, err
	}
	change := Change{Side: SideHub, Object: secret.String(), Action: Unchanged}
	found, err := cluster.find(ctx, secret)
	switch {
	case err != nil:
		return change, err
	case found == nil:
		return change, cluster.failed("detach "+r.Name, errors.New("it is not registered"))
	case found.GetLabels()[MemberLabel] != "true":
		return change, cluster.failed("annotate "+secret.String(), errors.New("it is no registration"))
	}
	was, is := found.GetAnnotations()[DetachedAnnotation]
	if is == (reason != "") && was == reason {
		return change, nil
	}
	body, err := detachPatch(string(found.GetUID()), reason)
	if err != nil {
		return change, err
	}
	_, err = cluster.client(secret).Patch(ctx, r.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return change, cluster.failed("annotate "+secret.String(), err)
	}
	change.Action = Updated
	return change, nil
}

// detachPatch is about the Secret that was looked at, and no other of its name.
func detachPatch(uid, reason string) ([]byte, error) {
	var value any
	if reason != "" {
		value = reason
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid, "annotations": map[string]any{DetachedAnnotation: value},
	}})
}
