package apply

import "reflect"

// Difference is the JSON merge patch (RFC 7386) that makes one object another.
func Difference(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key, value := range to {
		old, had := from[key]
		if had && reflect.DeepEqual(old, value) {
			continue
		}
		oldObject, wasObject := old.(map[string]any)
		object, isObject := value.(map[string]any)
		if wasObject && isObject {
			value = Difference(oldObject, object)
		}
		patch[key] = value
	}
	for key := range from {
		if _, kept := to[key]; !kept {
			patch[key] = nil
		}
	}
	return patch
}

// Pending is what of a merge patch would change an object.
func Pending(in, patch map[string]any) map[string]any {
	left := map[string]any{}
	for key, value := range patch {
		have, has := in[key]
		object, isObject := value.(map[string]any)
		inner, hasObject := have.(map[string]any)
		switch {
		case value == nil && !has, has && !isObject && reflect.DeepEqual(have, value):
			continue
		case isObject && hasObject:
			object = Pending(inner, object)
			if len(object) == 0 {
				continue
			}
			value = object
		}
		left[key] = value
	}
	return left
}
