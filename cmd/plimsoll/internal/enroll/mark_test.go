package enroll

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Who pauses the hub by Git writes what the command writes, but for its label.
func TestThePauseThatThePageShowsIsTheOneThatTheCommandCreates(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n([^`]*plimsoll-all-members[^`]*)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/cli.md does not show the Secret")
	}
	var shown map[string]any
	if err := yaml.UnmarshalStrict(block[1], &shown); err != nil {
		t.Fatal(err)
	}
	created, err := sharedSecret(RegistrationNamespace, ReadOnlyAnnotation)
	if err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(created.body.Object, "metadata", "labels", managedByLabel)
	if diff := cmp.Diff(created.body.Object, shown); diff != "" {
		t.Errorf("docs/cli.md (-command +page):\n%s", diff)
	}
}
