package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/apply"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

const (
	statusPatience = 5 * time.Second // for writing a status, conflicts included
	statusTries    = 5
	statusField    = "Status"
)

// writeStatus writes what differs between the status an object had before and the one it has after. It is a JSON merge
// patch that carries the resourceVersion it was made for: custom resources know no strategic merge, and server-side apply
// would send everything each time and could not see that somebody else changed a condition of ours. When the object has
// changed meanwhile, or the cache was behind, the same difference is rebuilt for the live object. Nothing is sent when
// nothing differs.
func writeStatus(ctx context.Context, c client.Client, live client.Reader, before, after StatusObject) error {
	if equality.Semantic.DeepEqual(statusOf(before), statusOf(after)) {
		return nil
	}
	base := before
	for try := 1; ; try++ {
		body, err := statusPatch(base, before, after)
		if err != nil || body == nil {
			return err
		}
		target := object.Like(before)
		target.SetNamespace(before.GetNamespace())
		target.SetName(before.GetName())
		err = c.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, body))
		if !apierrors.IsConflict(err) || try == statusTries {
			return client.IgnoreNotFound(err)
		}
		if err := live.Get(ctx, client.ObjectKeyFromObject(before), target); err != nil {
			return client.IgnoreNotFound(err)
		}
		if target.GetUID() != before.GetUID() || newerThan(target.CommonStatus(), after.CommonStatus()) {
			return nil // it is about another object, or somebody knows better
		}
		base = target
	}
}

// newerThan reports whether a status is about a later generation than another.
func newerThan(live, ours *Status) bool { return live.ObservedGeneration > ours.ObservedGeneration }

// statusPatch makes the patch that does to base what happened between before and after; nil: base shows it already.
func statusPatch(base, before, after StatusObject) ([]byte, error) {
	was, err := fields(before)
	if err != nil {
		return nil, err
	}
	is, err := fields(after)
	if err != nil {
		return nil, err
	}
	has, err := fields(base)
	if err != nil {
		return nil, err
	}
	pending, err := apply.Pending(has, was, is)
	if err != nil {
		return nil, fmt.Errorf("status of %T: %w", after, err)
	}
	var patch map[string]any
	decoder := json.NewDecoder(bytes.NewReader(pending))
	decoder.UseNumber() // a float64 has no room for all integers
	if err := decoder.Decode(&patch); err != nil {
		return nil, fmt.Errorf("status of %T: %w", after, err)
	}
	have := base.CommonStatus().Conditions
	want := mergeConditions(have, before.CommonStatus().Conditions, after.CommonStatus().Conditions)
	if !equality.Semantic.DeepEqual(have, want) {
		patch["conditions"] = want
	}
	if len(patch) == 0 {
		return nil, nil
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": base.GetResourceVersion()},
		"status":   patch,
	})
}

// fields is a status as JSON has it, without its conditions.
func fields(obj StatusObject) ([]byte, error) {
	data, err := json.Marshal(statusOf(obj))
	if err != nil {
		return nil, fmt.Errorf("status of %T: %w", obj, err)
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("status of %T: %w", obj, err)
	}
	delete(all, "conditions")
	return json.Marshal(all)
}

// mergeConditions does to a list of conditions what happened between two others, by type. What is in the list and was not
// touched stays, and a condition whose status the list has already keeps the time of its transition.
func mergeConditions(list, before, after []metav1.Condition) []metav1.Condition {
	merged := copyConditions(list)
	for i := range after {
		old := meta.FindStatusCondition(before, after[i].Type)
		if old == nil || !equality.Semantic.DeepEqual(*old, after[i]) {
			meta.SetStatusCondition(&merged, after[i])
		}
	}
	for i := range before {
		if meta.FindStatusCondition(after, before[i].Type) == nil {
			meta.RemoveStatusCondition(&merged, before[i].Type)
		}
	}
	return merged
}

// statusOf is the Status field of an object's struct, which set-up has checked to be there.
func statusOf(obj client.Object) any {
	return reflect.ValueOf(obj).Elem().FieldByName(statusField).Interface()
}

// checkStatus reports what keeps the framework from keeping the status of a kind.
func checkStatus(obj StatusObject) error {
	t := reflect.TypeOf(obj).Elem()
	field, ok := t.FieldByName(statusField)
	if !ok || field.Type.Kind() != reflect.Struct {
		return fmt.Errorf("%s is a StatusObject and has no struct in a field named %s", t, statusField)
	}
	data, err := json.Marshal(statusOf(withStatus(obj)))
	if err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	var found Status
	if err := json.Unmarshal(data, &found); err != nil || found.ObservedGeneration != 1 || len(found.Conditions) != 1 {
		return fmt.Errorf("%s: CommonStatus is not embedded inline in %s", t, field.Type)
	}
	return nil
}

// withStatus is an object of the kind with something in the framework's part of its status.
func withStatus(obj StatusObject) StatusObject {
	probe := object.Like(obj)
	*probe.CommonStatus() = Status{ObservedGeneration: 1, Conditions: []metav1.Condition{{Type: ConditionReady}}}
	return probe
}
