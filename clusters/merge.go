package clusters

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MergeKinds makes one declaration of each kind out of those of several controllers, in the order of first mention: what
// any of them keeps is kept, the indexes are united, and a kind is Optional only if it is so for all. Two declarations
// of one kind with different selectors, or with different indexes of one name, are an error.
func MergeKinds(kinds ...[]Kind) ([]Kind, error) {
	var merged []Kind
	position := map[reflect.Type]int{}
	for _, declared := range kinds {
		for _, kind := range declared {
			if kind.Object == nil || isUntyped(kind.Object) {
				return nil, errors.New("declare a kind to cache: Object must be an empty object of a Go type")
			}
			goType := reflect.TypeOf(kind.Object)
			at, seen := position[goType]
			if !seen {
				position[goType] = len(merged)
				kind.Indexes = maps.Clone(kind.Indexes)
				merged = append(merged, kind)
				continue
			}
			union, err := mergeKind(merged[at], kind)
			if err != nil {
				return nil, fmt.Errorf("declare kind %s to cache: %w", goType.Elem(), err)
			}
			merged[at] = union
		}
	}
	return merged, nil
}

func mergeKind(a, b Kind) (Kind, error) {
	if selector(a.Labels) != selector(b.Labels) {
		return Kind{}, fmt.Errorf("label selectors %q and %q differ", selector(a.Labels), selector(b.Labels))
	}
	if selector(a.Fields) != selector(b.Fields) {
		return Kind{}, fmt.Errorf("field selectors %q and %q differ", selector(a.Fields), selector(b.Fields))
	}
	for name, index := range b.Indexes {
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
