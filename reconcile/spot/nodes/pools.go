package nodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var nodePoolList = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePoolList"}

// PoolValue is a value of a label that nodes of a NodePool can have.
type PoolValue struct{ Key, Value string }

// PoolValues reads the values of labels that NodePools ask for. A member without Karpenter has none.
func (s *Autoscalers) PoolValues(ctx context.Context) ([]PoolValue, error) {
	ctx, cancel := context.WithTimeout(ctx, signTimeout)
	defer cancel()
	var values []PoolValue
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(nodePoolList)
	err := s.pages(ctx, list, func() {
		for i := range list.Items {
			values = append(values, poolValuesOf(&list.Items[i])...)
		}
	}, func() { values = nil })
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	return values, err
}

// poolValuesOf returns the values that a NodePool names: those of requirements with the operator In, and those of its labels. What it
// merely does not exclude is left out: nobody has said that there is such capacity.
func poolValuesOf(pool *unstructured.Unstructured) []PoolValue {
	if pool.GetDeletionTimestamp() != nil {
		return nil
	}
	var values []PoolValue
	for _, r := range requirementsAt(pool, "spec", "template", "spec", "requirements") {
		if r.Operator != corev1.NodeSelectorOpIn {
			continue
		}
		for _, value := range r.Values {
			values = append(values, PoolValue{Key: r.Key, Value: value})
		}
	}
	labels, _, _ := unstructured.NestedStringMap(pool.Object, "spec", "template", "metadata", "labels")
	for key, value := range labels {
		values = append(values, PoolValue{Key: key, Value: value})
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
