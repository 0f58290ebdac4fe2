package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

// ResourceList is an amount of each of some resources.
//
// +kubebuilder:validation:MaxProperties=32
type ResourceList map[corev1.ResourceName]Quantity

// Quantity is an amount of a resource: a number, and a unit or a decimal exponent of at most two digits.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$`
type Quantity struct {
	resource.Quantity `json:"-"`
}

// UnmarshalJSON reads a quantity of which an exponent that no computer should compute is bounded: what was stored before the
// definition had its rules, and what an annotation carries, has not been held to them.
func (q *Quantity) UnmarshalJSON(text []byte) error {
	bounded := append([]byte(nil), text...)
	inner := bounded
	if n := len(inner); n >= 2 && inner[0] == '"' {
		inner = inner[1 : n-1]
	}
	quantities.Clamp(inner)
	return q.Quantity.UnmarshalJSON(bounded)
}

// Kubernetes is the list as the core API has it; nil for nil.
func (l ResourceList) Kubernetes() corev1.ResourceList {
	if l == nil {
		return nil
	}
	list := make(corev1.ResourceList, len(l))
	for name, quantity := range l {
		list[name] = quantity.Quantity
	}
	return list
}
