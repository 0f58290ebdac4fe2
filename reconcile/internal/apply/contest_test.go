package apply

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheOwnersOfAFieldAreFoundWhateverItIsCalled(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	entries := []metav1.ManagedFieldsEntry{
		entry("plimsoll-c", `{"f:spec":{"f:replicas":{}}}`),
		entry("hpa", `{"f:spec":{"f:replicas":{}}}`),
		entry("injector", `{"f:spec":{"f:containers":{"k:{\"name\":\"x\"}":{"f:image":{}}}}}`),
		entry("kubectl", `{"f:metadata":{"f:labels":{"f:app.kubernetes.io/name":{}}}}`),
	}
	for path, want := range map[string]string{
		"spec.replicas": `"hpa"`, "spec.containers[0].image": `"injector"`,
		"metadata.labels.app.kubernetes.io/name": `"kubectl"`, "data.x": "",
	} {
		if got := strings.Join(otherOwners(entries, "plimsoll-c", path), " "); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
