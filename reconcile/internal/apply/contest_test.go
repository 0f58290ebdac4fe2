package apply

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func TestTheOwnersOfAFieldAreFoundWhateverItIsCalled(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	entries := []metav1.ManagedFieldsEntry{
		entry("plimsoll-c", `{"f:spec":{"f:replicas":{}}}`),
		entry("hpa", `{"f:spec":{"f:replicas":{}}}`),
		entry("injector", `{"f:spec":{"f:containers":{"k:{\"name\":\"x\"}":{"f:image":{}}}}}`),
		entry("argocd", `{"f:metadata":{"f:labels":{"f:app.kubernetes.io/instance":{}}}}`),
		entry("kubectl", `{"f:metadata":{"f:labels":{"f:app.kubernetes.io/name":{}}}}`),
	}
	for _, test := range []struct {
		path fieldpath.Path
		want string
	}{
		{fieldpath.MakePathOrDie("spec", "replicas"), `"hpa"`},
		{fieldpath.MakePathOrDie("spec", "containers", 0, "image"), `"injector"`},
		{fieldpath.MakePathOrDie("metadata", "labels", "app.kubernetes.io/name"), `"kubectl"`},
		{fieldpath.MakePathOrDie("metadata", "labels"), `"argocd" "kubectl"`},
		{fieldpath.MakePathOrDie("data", "x"), ""},
	} {
		if got := strings.Join(otherOwners(entries, "plimsoll-c", test.path), " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.path, got, test.want)
		}
	}
}
