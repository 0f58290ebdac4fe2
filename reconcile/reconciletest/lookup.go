package reconciletest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is what a script calls Kind[.group]/[namespace/]name.
func (s *story) object(t Target, word string) (*unstructured.Unstructured, error) {
	parts := strings.Split(word, "/")
	if len(parts) < 2 || len(parts) > 3 {
		return nil, fmt.Errorf("%q: want Kind/name or Kind/namespace/name", word)
	}
	kind, group, _ := strings.Cut(parts[0], ".")
	mapping, err := t.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	if err != nil {
		return nil, fmt.Errorf("%q: %w", word, err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(mapping.GroupVersionKind)
	u.SetName(parts[len(parts)-1])
	switch {
	case len(parts) == 3:
		u.SetNamespace(parts[1])
	case mapping.Scope.Name() == "namespace":
		u.SetNamespace(s.Env["NS"])
	}
	return u, nil
}

// holds reports why a check does not hold for an object.
func holds(check string, obj *unstructured.Unstructured, exists bool) error {
	switch {
	case check == "gone" && exists:
		return errors.New("it is there")
	case check == "gone":
		return nil
	case !exists:
		return errors.New("it is not there")
	case check == "exists":
		return nil
	}
	at := strings.IndexAny(check, "=~")
	if at < 0 {
		return fmt.Errorf("check %q: want exists, gone, path=value or path~text", check)
	}
	path, want := check[:at], check[at+1:]
	value, found, err := field(obj.Object, path)
	if err != nil {
		return fmt.Errorf("check %q: %w", check, err)
	}
	have := ""
	if found {
		have = fmt.Sprint(value)
	}
	if ok := have == want; check[at] == '=' && !ok || check[at] == '~' && !strings.Contains(have, want) {
		return fmt.Errorf("%s is %q, not %q", path, have, want)
	}
	return nil
}

// field follows a path into an object.
func field(value any, path string) (any, bool, error) {
	for _, step := range strings.Split(path, ".") {
		name, item, in := strings.Cut(step, "[")
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, false, nil
		}
		if value, ok = fields[name]; !ok {
			return nil, false, nil
		}
		if !in {
			continue
		}
		which, closed := strings.CutSuffix(item, "]")
		if !closed {
			return nil, false, fmt.Errorf("%q lacks a ]", step)
		}
		if value, ok = itemIn(value, which); !ok {
			return nil, false, nil
		}
	}
	return value, true, nil
}

// itemIn is the item of a list that has this type or name, or number.
func itemIn(list any, which string) (any, bool) {
	items, _ := list.([]any)
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok && (fields["type"] == which || fields["name"] == which) {
			return item, true
		}
	}
	if i, err := strconv.Atoi(which); err == nil && i >= 0 && i < len(items) {
		return items[i], true
	}
	return nil, false
}
