package kinds_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/kinds"
)

// ticket is a kind of somebody else. Its objects need a title, and get a label.
func ticket() module.Resource {
	return module.Resource{
		Title: "Tickets", Group: "example.com", Kind: "Ticket", Plural: "tickets", Versions: []string{"v1"},
		AddToScheme: func(*runtime.Scheme) error { return nil },
		Complete: func(object *metav1.ObjectMeta) bool {
			if object.Labels["example.com/ticket"] == "true" {
				return false
			}
			metav1.SetMetaDataLabel(object, "example.com/ticket", "true")
			return true
		},
		Review: func(asked module.Review) (module.Judgement, error) {
			var is struct{ Spec struct{ Title string } }
			if err := json.Unmarshal(asked.Object, &is); err != nil || is.Spec.Title == "" {
				return module.Judgement{Refusals: field.ErrorList{field.Required(field.NewPath("spec", "title"), "people read it")}}, err
			}
			return module.Judgement{}, nil
		},
	}
}

// call is what a member's API server asks about a Ticket, with a token, and what it is answered.
func call(handler http.Handler, token, what, object string) (status int, answer string) {
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"7","operation":"CREATE","name":"t","namespace":"shop",` +
		`"resource":{"group":"example.com","version":"v1","resource":"tickets"},"object":` + object + `}}`
	request := httptest.NewRequest(http.MethodPost, "/webhook/v1/members/eu/"+token+"/tickets/"+what, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorded := httptest.NewRecorder()
	handler.ServeHTTP(recorded, request)
	text, _ := io.ReadAll(recorded.Body)
	return recorded.Code, string(text)
}

func TestCallsAboutAKindAreAnsweredAndCountedAsWhatTheyWere(t *testing.T) {
	registry := prometheus.NewRegistry()
	tokens := webhook.NewTokens(bytes.Repeat([]byte{7}, 32), func(member string) (clusters.Registration, bool) {
		return clusters.Registration{UID: "1"}, member == "eu"
	})
	token, err := tokens.For("tickets").Current("eu")
	if err != nil {
		t.Fatal(err)
	}
	handler, err := kinds.NewHandler(tokens, []module.Resource{ticket()}, registry, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const titled, untitled = `{"metadata":{"name":"t"},"spec":{"title":"Oops"}}`, `{"metadata":{"name":"t"},"spec":{}}`
	for range 3 {
		if status, answer := call(handler, token, "validate", titled); status != http.StatusOK || !strings.Contains(answer, `"allowed":true`) {
			t.Errorf("with a title: %d %s", status, answer)
		}
	}
	for range 2 {
		if status, answer := call(handler, token, "validate", untitled); status != http.StatusOK || !strings.Contains(answer, `"allowed":false`) || !strings.Contains(answer, "spec.title: Required value: people read it") {
			t.Errorf("without a title: %d %s", status, answer)
		}
	}
	if status, answer := call(handler, token, "default", titled); status != http.StatusOK || !strings.Contains(answer, `"patch":`) {
		t.Errorf("to be completed: %d %s", status, answer)
	}
	if status, _ := call(handler, "another", "validate", titled); status != http.StatusNotFound {
		t.Errorf("with another token: %d", status)
	}

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{} // by call, kind and outcome
	for _, family := range families {
		for _, series := range family.GetMetric() {
			name := family.GetName()
			for _, label := range series.GetLabel() {
				name += "/" + label.GetValue()
			}
			counted[name] = series.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"plimsoll_kind_calls_total/validate/tickets/ok": 3, "plimsoll_kind_calls_total/validate/tickets/refused": 2,
		"plimsoll_kind_calls_total/default/tickets/ok": 1, "plimsoll_kind_calls_total/validate/tickets/rejected": 1,
	}
	if diff := cmp.Diff(want, counted); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
