package apply

import (
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Objects as JSON has them: maps, lists and scalars.

// differsAt names the first field that is wanted and is not there, or has another value; nil: all are there. What is there
// besides is other people's. A list must be there element by element: whether somebody else may add to one only the
// server knows, so that one with more elements counts as different.
func differsAt(have, want map[string]any) fieldpath.Path {
	at, _ := differsIn(have, want, sharedLists)
	return at
}

// lists are fields by their names: those that several people add to, in any order, and objects with such fields.
type lists map[string]lists

// sharedLists are those of every kind.
var sharedLists = lists{"metadata": {"ownerReferences": nil, "finalizers": nil}}

func differsIn(have, want map[string]any, shared lists) (at fieldpath.Path, differ bool) {
	for _, key := range sortedKeys(want) {
		value, there := have[key]
		below, named := shared[key]
		switch {
		case !there, named && below == nil && !containsAll(value, want[key]):
			return fieldpath.Path{{FieldName: &key}}, true
		case named && below == nil:
			continue
		}
		if at, differ := differs(value, want[key], below); differ {
			return append(fieldpath.Path{{FieldName: &key}}, at...), true
		}
	}
	return nil, false
}

// differs reports whether have lacks something of want, and where below it.
func differs(have, want any, shared lists) (at fieldpath.Path, differ bool) {
	switch want := want.(type) {
	case map[string]any:
		if have, ok := have.(map[string]any); ok {
			return differsIn(have, want, shared)
		}
		return nil, true
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(want) {
			return nil, true
		}
		for i := range want {
			if at, differ := differs(have[i], want[i], nil); differ {
				return append(fieldpath.Path{{Index: &i}}, at...), true
			}
		}
		return nil, false
	}
	return nil, !reflect.DeepEqual(have, want)
}

func containsAll(have, want any) bool {
	all, _ := have.([]any)
	wanted, _ := want.([]any)
	for _, element := range wanted {
		if !slices.ContainsFunc(all, func(other any) bool { _, differ := differs(other, element, nil); return !differ }) {
			return false
		}
	}
	return true
}

// pathOf reads the path of a field as people write it, such as spec.replicas.
func pathOf(text string) fieldpath.Path {
	var path fieldpath.Path
	for key := range strings.SplitSeq(text, ".") {
		path = append(path, fieldpath.PathElement{FieldName: &key})
	}
	return path
}

// textOf is how people write a path.
func textOf(path fieldpath.Path) string { return strings.TrimPrefix(path.String(), ".") }

// dropNulls removes fields that say nothing, in place.
func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				delete(v, key)
				continue
			}
			dropNulls(value)
		}
	case []any:
		for _, value := range v {
			dropNulls(value)
		}
	}
}

// at is the value of a field by its path, for example "spec.replicas".
func at(fields map[string]any, path string) (any, bool) {
	var value any = fields
	for key := range strings.SplitSeq(path, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = object[key]; !ok {
			return nil, false
		}
	}
	return value, true
}

// put sets the value of a field by its path.
func put(fields map[string]any, path string, value any) {
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		inner, ok := fields[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			fields[key] = inner
		}
		fields = inner
	}
	fields[keys[len(keys)-1]] = value
}

func sortedKeys(fields map[string]any) []string {
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
