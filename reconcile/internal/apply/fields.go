package apply

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Objects as JSON has them: maps, lists and scalars.

// differsAt names the first field that is wanted and is not there, or has another value; empty: all are there. What is there
// besides is other people's. A list must be there element by element: whether somebody else may add to one only the
// server knows, so that one with more elements counts as different.
func differsAt(have, want map[string]any) string { return differsIn(have, want, "") }

func differsIn(have, want map[string]any, path string) string {
	for _, key := range sortedKeys(want) {
		value, there := have[key]
		field := strings.TrimPrefix(path+"."+key, ".")
		if !there {
			return field
		}
		if shared(field) {
			if !containsAll(value, want[key]) {
				return field
			}
			continue
		}
		if at := differs(value, want[key], field); at != "" {
			return at
		}
	}
	return ""
}

func differs(have, want any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		if have, ok := have.(map[string]any); ok {
			return differsIn(have, want, path)
		}
		return path
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(want) {
			return path
		}
		for i := range want {
			if at := differs(have[i], want[i], path+"["+strconv.Itoa(i)+"]"); at != "" {
				return at
			}
		}
		return ""
	}
	if reflect.DeepEqual(have, want) {
		return ""
	}
	return path
}

// shared tells whether a field is a list that several people add to, in any order, of every kind.
func shared(path string) bool {
	return path == "metadata.ownerReferences" || path == "metadata.finalizers"
}

func containsAll(have, want any) bool {
	all, _ := have.([]any)
	wanted, _ := want.([]any)
	for _, element := range wanted {
		if !slices.ContainsFunc(all, func(other any) bool { return differs(other, element, "element") == "" }) {
			return false
		}
	}
	return true
}

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

// onlyOwner tells whether a manager applied a field, and nobody else owns it.
func onlyOwner(entries []metav1.ManagedFieldsEntry, manager, path string) bool {
	mine := false
	for _, entry := range entries {
		if entry.FieldsV1 == nil || !ownsField(entry.FieldsV1.GetRawBytes(), path) {
			continue
		}
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			return false
		}
		mine = true
	}
	return mine
}

// ownsField tells whether a set of fields, in the form of managedFields, has a field.
func ownsField(set []byte, path string) bool {
	for key := range strings.SplitSeq(path, ".") {
		var fields map[string]json.RawMessage
		if json.Unmarshal(set, &fields) != nil {
			return false
		}
		inner, ok := fields["f:"+key]
		if !ok {
			return false
		}
		set = inner
	}
	return true
}

func sortedKeys(fields map[string]any) []string {
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
