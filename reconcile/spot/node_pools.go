package spot

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// poolsEvery is how often a member's NodePools are read. There are few, and they rarely change.
const poolsEvery = time.Minute

var nodePoolList = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePoolList"}

// poolValue is a value of a label that nodes of a NodePool can have.
type poolValue struct{ key, value string }

// followPools reads the member's NodePools until ctx ends. They say which capacity types nodes can have that do not exist yet.
func (m *member) followPools(ctx context.Context, dir *directory) {
	problem := ""
	for ctx.Err() == nil {
		values, err := dir.signs.poolValues(ctx)
		switch {
		case err == nil:
			problem = ""
			dir.nodes.census.expect(values)
		case err.Error() != problem && ctx.Err() == nil: // what was read before stays
			problem = err.Error()
			m.engine.Log.InfoContext(ctx, "NodePools cannot be read: reserved capacity is used once it has a node", "member", m.name, "error", err)
		}
		pause(ctx, poolsEvery)
	}
}

// poolValues reads the values of labels that NodePools ask for. A member without Karpenter has none.
func (s *nodeSigns) poolValues(ctx context.Context) ([]poolValue, error) {
	ctx, cancel := context.WithTimeout(ctx, signTimeout)
	defer cancel()
	var values []poolValue
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(nodePoolList)
	err := s.pages(ctx, list, func() {
		for i := range list.Items {
			values = append(values, poolValuesOf(&list.Items[i])...)
		}
	})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	return values, err
}

// poolValuesOf returns the values that a NodePool names: those of requirements with the operator In, and those of its labels. What it
// merely does not exclude is left out: nobody has said that there is such capacity.
func poolValuesOf(pool *unstructured.Unstructured) []poolValue {
	if pool.GetDeletionTimestamp() != nil {
		return nil
	}
	var values []poolValue
	for _, r := range requirementsAt(pool, "spec", "template", "spec", "requirements") {
		if r.Operator != corev1.NodeSelectorOpIn {
			continue
		}
		for _, value := range r.Values {
			values = append(values, poolValue{r.Key, value})
		}
	}
	labels, _, _ := unstructured.NestedStringMap(pool.Object, "spec", "template", "metadata", "labels")
	for key, value := range labels {
		values = append(values, poolValue{key, value})
	}
	return values
}

// requirementsAt reads the requirements of a NodePool or NodeClaim.
func requirementsAt(obj *unstructured.Unstructured, path ...string) []corev1.NodeSelectorRequirement {
	var required []corev1.NodeSelectorRequirement
	requirements, _, _ := unstructured.NestedSlice(obj.Object, path...)
	for _, item := range requirements {
		r, _ := item.(map[string]any)
		key, _, _ := unstructured.NestedString(r, "key")
		operator, _, _ := unstructured.NestedString(r, "operator")
		values, _, _ := unstructured.NestedStringSlice(r, "values")
		required = append(required, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOperator(operator), Values: values})
	}
	return required
}
