package clusters

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

// resource is one of a group that a fake member serves, and the events of its watches.
func (f *fakeAPI) resource(gvk schema.GroupVersionKind, name string, events <-chan string, items ...map[string]any) {
	path, api := "/apis/"+gvk.GroupVersion().String(), gvk.GroupVersion().String()
	f.answer(path+"/"+name, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("sendInitialEvents") == "true":
			fail(w, http.StatusUnprocessableEntity)
			return
		case !intake.IsStream(r):
			write(w, map[string]any{"apiVersion": api, "kind": gvk.Kind + "List", "metadata": map[string]any{"resourceVersion": "10"}, "items": items})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		for {
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case event := <-events:
				_, _ = io.WriteString(w, event)
			}
		}
	})
	f.answer(path, func(w http.ResponseWriter, _ *http.Request) {
		write(w, metav1.APIResourceList{GroupVersion: api, APIResources: []metav1.APIResource{{Name: name, Kind: gvk.Kind}}})
	})
}

// The pauses between attempts last for an hour here.
func TestAKindThatComesLateIsThereSoonAfterItsDefinition(t *testing.T) {
	t.Parallel()
	definition := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	late := schema.GroupVersionKind{Group: "late.example", Version: "v1", Kind: "Thing"}
	object := func(of schema.GroupVersionKind) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(of)
		return object
	}
	f, api := newFleet(t, func(o *Options) {
		o.RetryMin, o.RetryMax = time.Hour, time.Hour
		o.Kinds = append(o.Kinds, Kind{Object: object(definition), Names: []string{"things.late.example"}}, Kind{Object: object(late), Optional: true})
	}), newFakeAPI(t, "a")
	things := object(definition)
	things.SetName("things.late.example")
	things.SetUID("things")
	things.SetResourceVersion("9")
	events := make(chan string, 1)
	api.resource(definition, "customresourcedefinitions", events, things.Object)
	f.secrets.put("a", api.kubeconfig())
	member := f.awaitReady("a")
	asked := func() int { return api.count("GET /apis/late.example/v1") }
	f.g.Eventually(asked).Should(Equal(2), "first, and because there is a definition")
	f.g.Expect(member.Has(object(late))).To(BeFalse())

	api.resource(late, "things", nil)
	things.SetResourceVersion("11")
	text, err := json.Marshal(map[string]any{"type": "MODIFIED", "object": things.Object})
	f.g.Expect(err).NotTo(HaveOccurred())
	events <- string(text)
	f.g.Eventually(func() bool { return member.Has(object(late)) }).Should(BeTrue())
}
