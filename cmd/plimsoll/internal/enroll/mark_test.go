package enroll

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
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

// A registration that is removed, and made again before its mark comes, is another one: nobody meant to cordon that.
func TestAMarkIsForTheRegistrationThatWasFound(t *testing.T) {
	for uid, want := range map[string]bool{"first": true, "second": false} { // of the Secret when the mark comes
		var marked atomic.Bool
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodPatch {
				var patch struct {
					Metadata struct {
						UID         string            `json:"uid"`
						Annotations map[string]string `json:"annotations"`
					} `json:"metadata"`
				}
				if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
					t.Error(err)
				}
				if named := patch.Metadata.UID; named != "" && named != uid { // which an API server refuses
					w.WriteHeader(http.StatusConflict)
					fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)
					return
				}
				marked.Store(patch.Metadata.Annotations[CordonedAnnotation] == On)
			}
			fmt.Fprintf(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"prod","uid":"first","labels":{%q:"true"}}}`, MemberLabel)
		}))
		defer server.Close()
		member := Registration{Name: "prod", Namespace: RegistrationNamespace, MemberNamespace: DefaultNamespace}
		_, err := Mark(t.Context(), member, &Context{Name: SideHub, Config: &rest.Config{Host: server.URL}}, CordonedAnnotation, On)
		if marked.Load() != want || (err == nil) != want {
			t.Errorf("a Secret with UID %s: marked %t, %v", uid, marked.Load(), err)
		}
	}
}
