package depend

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// A target is one object that others depend on.
type target struct {
	member string
	gvk    schema.GroupVersionKind
	name   types.NamespacedName
}

func (d Dependency) target() target { return target{member: d.member, gvk: d.gvk, name: d.name} }

// facts are what is kept of a target: never a value.
type facts struct {
	version    string // resourceVersion; empty: it does not exist
	keysKnown  bool
	keys       []string // of Secrets and ConfigMaps, sorted
	conditions []fact   // of others
	problem    string   // why nothing is known
}

// fact is one condition.
type fact struct {
	name   string
	status metav1.ConditionStatus
	stale  bool // it is about an older generation
}

// mayNotRead is the problem where the member forbids the hub to read what is depended on.
const mayNotRead = "the hub may not read it"

// maxFacts bounds how many conditions of an object are kept.
const maxFacts = 64

// sufficient reports whether the facts are enough to judge a dependency.
func (f *facts) sufficient(d Dependency) bool {
	return f.problem == "" && (d.keys == "" || f.keysKnown || f.version == "")
}

// why says in what a dependency is not met by the facts; empty: it is met.
func (f *facts) why(d Dependency) string {
	switch {
	case f.problem != "":
		return f.problem
	case f.version == "":
		return "it does not exist"
	case d.condition != "":
		return f.whyCondition(d)
	}
	var lacks []string
	for _, key := range split(d.keys) {
		if _, has := slices.BinarySearch(f.keys, key); !has {
			lacks = append(lacks, fmt.Sprintf("%q", key))
		}
	}
	switch len(lacks) {
	case 0:
		return ""
	case 1:
		return "it has no key " + lacks[0]
	}
	return "it has none of the keys " + strings.Join(lacks, ", ")
}

func (f *facts) whyCondition(d Dependency) string {
	for _, c := range f.conditions {
		switch {
		case c.name != d.condition:
		case c.stale:
			return fmt.Sprintf("its condition %s is about an older generation, not %s", d.condition, d.status)
		case c.status != d.status:
			return fmt.Sprintf("its condition %s is %s, not %s", d.condition, c.status, d.status)
		default:
			return ""
		}
	}
	return fmt.Sprintf("it has no condition %s", d.condition)
}

// invalid says why a dependency can never be met; empty: it can.
func (d Dependency) invalid() string {
	switch {
	case d.external():
		return invalidURL(d.url)
	case d.name.Name == "":
		return "the dependency names no object"
	case d.gvk.Kind == "" || d.gvk.Version == "":
		return "the dependency names no kind and version"
	case d.gvk != secretKind && d.gvk != configMapKind && d.condition == "":
		return "the dependency names no condition"
	}
	return ""
}

// observe asks a member for what a dependency needs to know. Values are dropped before it returns.
func observe(ctx context.Context, r client.Reader, d Dependency) facts {
	var f facts
	var err error
	switch {
	case d.condition != "":
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(d.gvk)
		if err = r.Get(ctx, d.name, obj); err == nil {
			f = factsOf(obj)
		}
	case d.keys == "":
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(d.gvk)
		if err = r.Get(ctx, d.name, obj); err == nil {
			f = factsOf(obj)
		}
	case d.gvk == secretKind:
		var obj corev1.Secret
		if err = r.Get(ctx, d.name, &obj); err == nil {
			f = facts{version: versionOf(&obj), keysKnown: true, keys: keysOf(obj.Data)}
		}
	default:
		var obj corev1.ConfigMap
		if err = r.Get(ctx, d.name, &obj); err == nil {
			f = facts{version: versionOf(&obj), keysKnown: true, keys: append(keysOf(obj.Data), keysOf(obj.BinaryData)...)}
			slices.Sort(f.keys)
		}
	}
	if err == nil {
		err = checkVersion(f.version)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return facts{problem: problemOf(err, d.gvk)}
	}
	return f
}

// problemOf says in words of ours why a member did not answer that. What a server says may quote what it was sent.
func problemOf(err error, gvk schema.GroupVersionKind) string {
	switch {
	case apierrors.IsForbidden(err):
		return mayNotRead
	case meta.IsNoMatchError(err):
		return "the member does not serve " + object.KindName(gvk)
	}
	return "the member does not say whether it is there"
}

// versionOf is the resourceVersion of an object. That of a hostile API server may be of any length.
func versionOf(obj client.Object) string {
	return strings.Clone(object.Clip(obj.GetResourceVersion()))
}

// maxKeys is how many keys of a Secret or ConfigMap are kept, more than fit into one of Kubernetes' 1 MiB with values, and maxKey how many
// bytes each may have, as in Kubernetes. A hostile API server sends others.
const maxKeys, maxKey = 1 << 15, 253

// keysOf returns the keys of a Secret or ConfigMap in order.
func keysOf[V any](data map[string]V) []string {
	keys := make([]string, 0, min(len(data), maxKeys))
	for key := range data {
		if len(key) <= maxKey && len(keys) < maxKeys {
			keys = append(keys, strings.Clone(key))
		}
	}
	slices.Sort(keys)
	return keys
}

// factsOf are the facts of an object as it was watched or read.
func factsOf(obj client.Object) facts {
	f := facts{version: versionOf(obj)}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return f
	}
	listed, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, one := range listed[:min(len(listed), maxFacts)] {
		condition, _ := one.(map[string]any)
		name, _ := condition["type"].(string)
		status, _ := condition["status"].(string)
		if name == "" {
			continue
		}
		observed, said := condition["observedGeneration"].(int64)
		f.conditions = append(f.conditions, fact{
			name: strings.Clone(object.Clip(name)), status: metav1.ConditionStatus(strings.Clone(object.Clip(status))),
			stale: said && observed != 0 && observed < u.GetGeneration(),
		})
	}
	return f
}
