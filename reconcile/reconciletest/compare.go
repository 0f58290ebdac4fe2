package reconciletest

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compare says what is not as the case wants it.
func (w *world) compare(ctx context.Context, key types.NamespacedName, kind client.Object, c Case) (problems []string) {
	differs := func(headline string, want, got any) {
		if diff := cmp.Diff(want, got); diff != "" {
			problems = append(problems, failed(headline, diff))
		}
	}
	want := c.Want
	if want.Result == "" {
		want.Result = "Done"
	}
	differs("result", want.Result, w.once.Result)
	if want.Outcome != "" {
		differs("outcome", string(want.Outcome), string(w.once.Outcome))
	}
	problems = append(problems, errorProblem(want.Err, w.once.Err)...)
	differs("writes", lines(want.Writes), lines(w.member.writes))
	differs("events", lines(want.Events), lines(w.once.Events))
	for _, f := range w.member.failures {
		if !f.happened {
			problems = append(problems, fmt.Sprintf("a call that was to fail did not happen: %+v", f.Failure))
		}
	}
	if len(want.Conditions) > 0 {
		differs("conditions", wordsOf(want.Conditions, nil), w.conditions(ctx, key, kind, want.Conditions))
	}
	for _, obj := range want.Objects {
		problems = append(problems, w.objectProblem(ctx, obj)...)
	}
	for _, obj := range want.Gone {
		if err := w.member.store.Get(ctx, client.ObjectKeyFromObject(obj), empty(obj)); !apierrors.IsNotFound(err) {
			problems = append(problems, fmt.Sprintf("%s %s is there, and should be gone (%v)", w.kindOf(obj), client.ObjectKeyFromObject(obj), err))
		}
	}
	return problems
}

// lines makes nil and empty the same.
func lines(of []string) []string { return append([]string{}, of...) }

func errorProblem(want string, got error) []string {
	switch {
	case got == nil && want == "":
		return nil
	case got == nil:
		return []string{fmt.Sprintf("error: there is none, and one should hold %q", want)}
	case want == "":
		return []string{"error: " + got.Error()}
	case !strings.Contains(got.Error(), want):
		return []string{fmt.Sprintf("error: %q should hold %q", got, want)}
	}
	return nil
}

// conditions are those of the reconciled object that are asked about, in words.
func (w *world) conditions(ctx context.Context, key types.NamespacedName, kind client.Object, want []metav1.Condition) []string {
	obj := empty(kind)
	if err := w.member.store.Get(ctx, key, obj); err != nil {
		return []string{err.Error()}
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return []string{err.Error()}
	}
	var got struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &got); err != nil {
		return []string{err.Error()}
	}
	var asked []metav1.Condition
	for i := range want {
		if found := meta.FindStatusCondition(got.Status.Conditions, want[i].Type); found != nil {
			asked = append(asked, *found)
		}
	}
	return wordsOf(asked, want)
}

// wordsOf says conditions in words; where like has no message, it is left out.
func wordsOf(conditions, like []metav1.Condition) []string {
	words := []string{}
	for _, c := range conditions {
		said := c.Type + "=" + string(c.Status) + " " + c.Reason
		if asked := meta.FindStatusCondition(like, c.Type); c.Message != "" && (asked == nil || asked.Message != "") {
			said += ": " + c.Message
		}
		words = append(words, said)
	}
	return words
}

// objectProblem compares an object with what is there, as far as its fields are set.
func (w *world) objectProblem(ctx context.Context, want client.Object) []string {
	name := w.kindOf(want) + " " + client.ObjectKeyFromObject(want).String()
	have := empty(want)
	if err := w.member.store.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
		return []string{fmt.Sprintf("%s: %v", name, err)}
	}
	wanted, err := set(want)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", name, err)}
	}
	there, err := set(have)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", name, err)}
	}
	if diff := cmp.Diff(wanted, like(there, wanted)); diff != "" {
		return []string{failed(name, diff)}
	}
	return nil
}

// set are the fields of an object that say something about what is wanted.
func set(obj client.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"resourceVersion", "managedFields", "creationTimestamp", "uid", "generation"} {
		unstructured.RemoveNestedField(fields, "metadata", name)
	}
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if status, ok := fields["status"].(map[string]any); ok && len(status) == 0 {
		delete(fields, "status")
	}
	return fields, nil
}

// like leaves of a value what another one of its shape has as well.
func like(value, shape any) any {
	switch shape := shape.(type) {
	case map[string]any:
		fields, ok := value.(map[string]any)
		if !ok {
			return value
		}
		kept := map[string]any{}
		for name, inner := range shape {
			if have, is := fields[name]; is {
				kept[name] = like(have, inner)
			}
		}
		return kept
	case []any:
		items, ok := value.([]any)
		if !ok || len(items) != len(shape) {
			return value
		}
		kept := make([]any, len(items))
		for i := range items {
			kept[i] = like(items[i], shape[i])
		}
		return kept
	}
	return value
}

func (w *world) kindOf(obj client.Object) string {
	gvk, err := w.member.store.GroupVersionKindFor(obj)
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	return kindName(gvk)
}

// empty makes an empty object of the same kind.
func empty(obj client.Object) client.Object {
	fresh := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if u, ok := fresh.(*unstructured.Unstructured); ok {
		u.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	}
	return fresh
}
