package spot

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// namespaceField is the field of every object in a namespace by which API servers select.
const namespaceField = "metadata.namespace"

// withoutExcluded selects objects by what a selector of namespaces says about their names: those that it excludes, or the only one
// that it includes. Nil: it says nothing that one list can ask for. An API server selects objects by the name of their namespace
// and not by its labels, of which only this one cannot change.
func withoutExcluded(namespaces labels.Selector) fields.Selector {
	var terms []fields.Selector
	requirements, _ := namespaces.Requirements()
	for i := range requirements {
		r := &requirements[i]
		if r.Key() != corev1.LabelMetadataName {
			continue
		}
		values := r.ValuesUnsorted()
		switch r.Operator() {
		case selection.NotIn, selection.NotEquals:
			for _, name := range r.Values().List() {
				terms = append(terms, fields.OneTermNotEqualSelector(namespaceField, name))
			}
		case selection.In, selection.Equals, selection.DoubleEquals:
			if len(values) == 1 {
				terms = append(terms, fields.OneTermEqualSelector(namespaceField, values[0]))
			}
		}
	}
	if len(terms) == 0 {
		return nil
	}
	return fields.AndSelectors(terms...)
}
