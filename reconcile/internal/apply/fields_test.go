package apply

import (
	"encoding/json"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
)

// anyFields draws an object as JSON has it, without nulls.
func anyFields(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		fields := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "fields") {
			fields[rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key")] = anyValue(depth).Draw(t, "value")
		}
		return fields
	})
}

func anyValue(depth int) *rapid.Generator[any] {
	scalar := rapid.Custom(func(t *rapid.T) any { return rapid.SampledFrom([]any{"x", "y", int64(1), true}).Draw(t, "scalar") })
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(scalar,
		rapid.Custom(func(t *rapid.T) any { return anyFields(depth-1).Draw(t, "object") }),
		rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(anyValue(depth-1), 0, 3).Draw(t, "list") }))
}

// overlay is what server-side apply makes of an object whose lists are all replaced whole.
func overlay(have, want map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(have)
	for key, value := range want {
		object, isObject := value.(map[string]any)
		if inner, ok := out[key].(map[string]any); ok && isObject {
			out[key] = overlay(inner, object)
		} else {
			out[key] = value
		}
	}
	return out
}

func TestNothingDiffersExactlyWhenApplyingWouldChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := anyFields(3).Draw(t, "have"), anyFields(3).Draw(t, "want")
		if rapid.Bool().Draw(t, "applied") {
			have = overlay(have, want)
		}
		changes := !reflect.DeepEqual(overlay(have, want), have)
		at := differsAt(have, want)
		// A list of objects that have more fields than wanted counts as the same: defaults are filled in there.
		if !changes && at != nil {
			t.Fatalf("nothing would change, and %s differs", at)
		}
		if applied := overlay(have, want); differsAt(applied, want) != nil {
			t.Fatalf("it differs at %s after it was applied", differsAt(applied, want))
		}
	})
}

func TestADifferenceIsNamedByItsPath(t *testing.T) {
	have := map[string]any{
		"metadata": map[string]any{
			"finalizers":      []any{"x", "y"},
			"ownerReferences": []any{map[string]any{"uid": "1"}, map[string]any{"uid": "2", "name": "n"}},
		},
		"spec": map[string]any{"list": []any{map[string]any{"name": "a", "filled": "in"}}, "one": "1", "empty": map[string]any{}},
	}
	for path, want := range map[string]map[string]any{
		"":                         {"spec": map[string]any{"list": []any{map[string]any{"name": "a"}}, "empty": map[string]any{}}},
		"spec.list[0].name":        {"spec": map[string]any{"list": []any{map[string]any{"name": "b"}}}},
		"spec.list":                {"spec": map[string]any{"list": []any{}}},
		"spec.one":                 {"spec": map[string]any{"one": "2"}},
		"spec.two":                 {"spec": map[string]any{"two": map[string]any{}}},
		"metadata.finalizers":      {"metadata": map[string]any{"finalizers": []any{"z"}}},
		"metadata.ownerReferences": {"metadata": map[string]any{"ownerReferences": []any{map[string]any{"uid": "2", "name": "m"}}}},
	} {
		if got := textOf(differsAt(have, want)); got != path {
			t.Errorf("differs at %q, want %q", got, path)
		}
	}
	in := map[string]any{"metadata": map[string]any{"finalizers": []any{"y"}, "ownerReferences": []any{map[string]any{"uid": "2"}}}}
	if got := differsAt(have, in); got != nil {
		t.Errorf("lists that others add to differ at %q", got)
	}
}

func TestWhatCanOnlyBeWrittenIsAppliedWhereItCanBeRead(t *testing.T) {
	got, err := configuration(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: "7", UID: "u", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		StringData: map[string]string{"a": "b"}, Data: map[string][]byte{"c": []byte("d")},
	})
	want := map[string]any{"metadata": map[string]any{"name": "s"}, "data": map[string]any{"a": "Yg==", "c": "ZA=="}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAMergePatchMakesOneObjectTheOtherAndIsThenNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to, other := anyFields(3).Draw(t, "from"), anyFields(3).Draw(t, "to"), anyFields(3).Draw(t, "other")
		pending := func(has map[string]any) map[string]any {
			patch, err := Pending(asJSON(t, has), asJSON(t, from), asJSON(t, to))
			if err != nil {
				t.Fatal(err)
			}
			return fromJSON(t, patch)
		}
		whole := pending(from)
		if made := patchedWith(from, whole); !reflect.DeepEqual(made, fromJSON(t, asJSON(t, to))) {
			t.Fatalf("%v patched with %v is %v, want %v", from, whole, made, to)
		}
		if left := pending(to); len(left) != 0 {
			t.Fatalf("of %v there is still %v to do in %v", whole, left, to)
		}
		if a, b := patchedWith(other, whole), patchedWith(other, pending(other)); !reflect.DeepEqual(a, b) {
			t.Fatalf("what is left out of the patch matters: %v and %v", a, b)
		}
	})
}

func TestAMergePatchKeepsLargeNumbers(t *testing.T) {
	patch, err := Pending([]byte(`{"a":9007199254740993}`), []byte(`{"a":9007199254740993}`), []byte(`{"a":9007199254740992}`))
	if err != nil || string(patch) != `{"a":9007199254740992}` {
		t.Errorf("%s, %v", patch, err)
	}
}

func asJSON(t *rapid.T, fields map[string]any) []byte {
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func fromJSON(t *rapid.T, data []byte) map[string]any {
	fields := map[string]any{}
	if err := utiljson.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// patchedWith is RFC 7386 as its text has it.
func patchedWith(target any, patch map[string]any) map[string]any {
	object, ok := target.(map[string]any)
	out := map[string]any{}
	if ok {
		out = runtime.DeepCopyJSON(object)
	}
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isObject:
			out[key] = patchedWith(out[key], inner)
		default:
			out[key] = value
		}
	}
	return out
}
