package clusters

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scope is one list, and the watch that follows it, by which objects of a kind are cached.
type scope struct {
	part      string // the namespace, or the name of an object, that it is a part for; "": it is the only one
	namespace string // listed; "": the list is one of the whole cluster
	fields    fields.Selector
}

// object is the name to which the scope is restricted, "" for many objects: a rule may allow a single one, by its name.
func (s scope) object() string {
	if s.fields == nil {
		return ""
	}
	name, _ := s.fields.RequiresExactMatch(metav1.ObjectNameField)
	return name
}

// selector is the field selector of the scope's cache, which takes one for a namespace as a list of that namespace only.
func (s scope) selector() fields.Selector {
	if s.namespace == "" {
		return s.fields
	}
	return bothFields(fields.OneTermEqualSelector("metadata.namespace", s.namespace), s.fields)
}

// bothFields selects what both do; nil selects all.
func bothFields(a, b fields.Selector) fields.Selector {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return fields.AndSelectors(a, b)
}

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// scopesOf are the scopes of a kind in a member that is registered for namespaces; nil: for the whole cluster. Of
// Namespaces only those are seen, one by one, as there is no right to list some of them. Other kinds without namespaces
// are the cluster's, and the same for all tenants of it.
func scopesOf(k declaredKind, mapping *meta.RESTMapping, namespaces []string) []scope {
	if k.Names != nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return named(k.Names)
	}
	if namespaces == nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace && k.gvk != namespaceKind {
		return []scope{{fields: k.Fields}}
	}
	scopes := make([]scope, len(namespaces))
	for i, name := range namespaces {
		scopes[i] = scope{part: name, namespace: name, fields: k.Fields}
	}
	if k.gvk == namespaceKind {
		return named(namespaces)
	}
	return scopes
}

// named are scopes of single objects.
func named(names []string) []scope {
	scopes := make([]scope, len(names))
	for i, name := range names {
		scopes[i] = scope{part: name, fields: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
	}
	return scopes
}

// byName reports whether the parts of a kind are found by the names of objects, and not by their namespaces.
func (k declaredKind) byName() bool { return k.gvk == namespaceKind || k.Names != nil }

// sameParts reports whether two lists of scopes of one kind cover the same namespaces.
func sameParts(a, b []scope) bool {
	return slices.EqualFunc(a, b, func(a, b scope) bool { return a.part == b.part })
}

// ofTenant is the declaration of a kind as it is in a member.
func (k declaredKind) ofTenant(member string, namespaces []string) declaredKind {
	if namespaces != nil && k.PerTenant && k.Fields != nil {
		if name, ok := k.Fields.RequiresExactMatch(metav1.ObjectNameField); ok {
			k.Fields = fields.OneTermEqualSelector(metav1.ObjectNameField, TenantName(name, member))
		}
	}
	return k
}

// question is what a member is asked about one access: in one namespace, or in the whole cluster.
type question struct {
	Access
	namespace string
}

// questionsOf are what a member that is registered for namespaces (nil: the whole cluster) is asked.
func questionsOf(access []Access, member string, namespaces []string) []question {
	var questions []question
	for _, a := range access {
		if namespaces != nil && a.PerTenant && a.Name != "" {
			a.Name = TenantName(a.Name, member)
		}
		switch {
		case namespaces == nil || a.ClusterScoped:
			questions = append(questions, question{Access: a})
		case a.resource() == corev1.Resource("namespaces"):
			for _, name := range namespaces {
				a.Name = name
				questions = append(questions, question{Access: a})
			}
		default:
			for _, name := range namespaces {
				questions = append(questions, question{a, name})
			}
		}
	}
	return questions
}

func (a Access) resource() schema.GroupResource {
	return schema.GroupResource{Group: a.Group, Resource: a.Resource}
}
