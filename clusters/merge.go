package clusters

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/caching"
)

// MergeKinds makes one declaration of each kind out of those of several controllers, in the order of first mention: what
// any of them keeps is kept, the indexes are united, and a kind is Optional only if it is so for all. Two declarations
// of one kind with different selectors, or with different indexes of one name, are an error.
func MergeKinds(kinds ...[]Kind) ([]Kind, error) {
	var merged []Kind
	position := map[string]int{}
	for _, declared := range kinds {
		for _, kind := range declared {
			name, err := declaredName(kind.Object)
			if err != nil {
				return nil, err
			}
			at, seen := position[name]
			if !seen {
				position[name] = len(merged)
				kind.Indexes = maps.Clone(kind.Indexes)
				merged = append(merged, kind)
				continue
			}
			union, err := mergeKind(merged[at], kind)
			if err != nil {
				return nil, fmt.Errorf("declare kind %s to cache: %w", name, err)
			}
			merged[at] = union
		}
	}
	return merged, nil
}

// declaredName distinguishes kinds: by the Go type of their objects, or by what an unstructured one says that it is.
func declaredName(object client.Object) (string, error) {
	if untyped, ok := object.(*unstructured.Unstructured); ok && untyped != nil {
		if gvk := untyped.GroupVersionKind(); gvk.Version != "" && gvk.Kind != "" {
			return caching.KindName(gvk), nil
		}
		return "", errors.New("declare a kind to cache: an unstructured Object must have an API version and a kind")
	}
	if object == nil || caching.IsUntyped(object) {
		return "", errors.New("declare a kind to cache: Object must be an empty object of a Go type, or an unstructured one")
	}
	return reflect.TypeOf(object).Elem().String(), nil
}

func mergeKind(a, b Kind) (Kind, error) {
	if selector(a.Labels) != selector(b.Labels) {
		return Kind{}, fmt.Errorf("label selectors %q and %q differ", selector(a.Labels), selector(b.Labels))
	}
	if selector(a.Fields) != selector(b.Fields) {
		return Kind{}, fmt.Errorf("field selectors %q and %q differ", selector(a.Fields), selector(b.Fields))
	}
	if selector(a.Needed) != selector(b.Needed) {
		a.Needed = nil
	}
	if (a.Names == nil) != (b.Names == nil) {
		return Kind{}, fmt.Errorf("one declaration is of the objects %q, and another of all", append(a.Names, b.Names...))
	}
	if a.Names != nil {
		a.Names = slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Names, b.Names))))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Indexes)) {
		index := b.Indexes[name]
		if other, taken := a.Indexes[name]; taken && reflect.ValueOf(other).Pointer() != reflect.ValueOf(index).Pointer() {
			return Kind{}, fmt.Errorf("two different indexes are named %q", name)
		}
		if a.Indexes == nil {
			a.Indexes = map[string]client.IndexerFunc{}
		}
		a.Indexes[name] = index
	}
	a.Keep = keepBoth(a.Keep, b.Keep)
	a.Optional = a.Optional && b.Optional
	a.Companion = a.Companion && b.Companion
	a.PerTenant = a.PerTenant || b.PerTenant
	return a, nil
}

// selector is the text of a label or field selector, "" for one that selects everything.
func selector(s interface {
	Empty() bool
	String() string
}) string {
	switch {
	case s == nil || s.Empty():
		return ""
	case s.String() == "":
		return "nothing"
	}
	return s.String()
}

// keepBoth keeps what either keeps; nil keeps everything.
func keepBoth(a, b func(from, into client.Object)) func(from, into client.Object) {
	if a == nil || b == nil {
		return nil
	}
	return func(from, into client.Object) {
		a(from, into)
		b(from, into)
	}
}
