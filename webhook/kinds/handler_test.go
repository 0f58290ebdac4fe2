package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

// kindSite answers the calls of one member "eu" about WebApps.
type kindSite struct {
	*Handler
	token string // for the calls of API servers that store WebApps
	log   *bytes.Buffer

	converter string // the token for conversions
}

func newKindSite(t testing.TB, review webapp.Reviewer) *kindSite {
	t.Helper()
	g := NewWithT(t)
	tokens := webhook.NewTokens(tokenKey, registered)
	s := &kindSite{token: current(g, tokens.For(webapp.Plural), "eu"), converter: current(g, tokens.For(webhook.ForConversions), "eu"), log: &bytes.Buffer{}}
	var err error
	s.Handler, err = NewHandler(tokens, []module.Resource{webapp.Resource(review)}, prometheus.NewRegistry(), slog.New(slog.NewJSONHandler(s.log, nil)))
	g.Expect(err).NotTo(HaveOccurred())
	s.refusals = nil // nobody waits for them
	return s
}

// at is where the member calls.
func (s *kindSite) at(call string) string {
	if call == "/convert" {
		return "/webhook/v1/members/eu/" + s.converter + call
	}
	return "/webhook/v1/members/eu/" + s.token + call
}

func (s *kindSite) post(path string, body []byte) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, request)
	return answer
}

func (s *kindSite) convert(t testing.TB, body string) apiextensionsv1.ConversionResponse {
	t.Helper()
	g := NewWithT(t)
	answer := s.post(s.at("/convert"), []byte(body))
	g.Expect(answer.Code).To(Equal(http.StatusOK))
	var review apiextensionsv1.ConversionReview
	g.Expect(json.Unmarshal(answer.Body.Bytes(), &review)).To(Succeed())
	g.Expect(review.APIVersion).To(Equal("apiextensions.k8s.io/v1"))
	g.Expect(review.Response).NotTo(BeNil())
	return *review.Response
}

const twoOld = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"7","desiredAPIVersion":"%s","objects":[
 {"apiVersion":"apps.plimsoll.dev/v1alpha1","kind":"WebApp","metadata":{"name":"a"},"spec":{"image":"a:1"}},
 {"apiVersion":"apps.plimsoll.dev/v1beta1","kind":"WebApp","metadata":{"name":"b"},"spec":{"containers":[{"name":"b","image":"b:1"}]}}]}}`

func TestAConversionKeepsTheOrderOfItsObjects(t *testing.T) {
	g := NewWithT(t)
	response := newKindSite(t, webapp.Policy{}).convert(t, fmt.Sprintf(twoOld, "apps.plimsoll.dev/v1"))
	g.Expect(response.Result.Status).To(Equal(metav1.StatusSuccess))
	g.Expect(response.UID).To(BeEquivalentTo("7"))
	g.Expect(response.ConvertedObjects).To(HaveLen(2))
	for i, name := range []string{"a", "b"} {
		var app v1.WebApp
		g.Expect(json.Unmarshal(response.ConvertedObjects[i].Raw, &app)).To(Succeed())
		g.Expect(app.APIVersion).To(Equal("apps.plimsoll.dev/v1"))
		g.Expect(app.Name).To(Equal(name))
		g.Expect(app.Spec.Containers[0].Image).To(Equal(name + ":1"))
	}
}

func TestAConversionOfGarbageFailsAndSaysWhy(t *testing.T) {
	s := newKindSite(t, webapp.Policy{})
	for name, test := range map[string]struct{ body, want string }{
		"nothing":           {``, "the body is not a ConversionReview"},
		"no JSON":           {`<html>`, "the body is not a ConversionReview"},
		"another review":    {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`, `"admission.k8s.io/v1" "AdmissionReview": must be a ConversionReview`},
		"no request":        {`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`, "with a request"},
		"an unknown target": {fmt.Sprintf(twoOld, "apps/v1"), `objects[0]: desiredAPIVersion: "apps/v1": is not a version of WebApp`},
		"a broken object":   {strings.Replace(fmt.Sprintf(twoOld, "apps.plimsoll.dev/v1"), `"b:1"`, `{}`, 1), "objects[1]: WebApp /b: spec.containers.image: must be string"},
		"an empty object":   {`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"7","desiredAPIVersion":"apps.plimsoll.dev/v1","objects":[{}]}}`, "objects[0]: kind"},
		"no object":         {`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"7","desiredAPIVersion":"apps.plimsoll.dev/v1","objects":[null]}}`, "objects[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			response := s.convert(t, test.body)
			g.Expect(response.Result.Status).To(Equal(metav1.StatusFailure))
			g.Expect(response.Result.Message).To(ContainSubstring(test.want))
			g.Expect(response.ConvertedObjects).To(BeEmpty())
		})
	}
	NewWithT(t).Expect(testutil.ToFloat64(s.answered.WithLabelValues("", "convert", "failed"))).To(BeEquivalentTo(8))
}

func TestAConversionNeedsItsFieldsInTheOrderOfAPIServers(t *testing.T) {
	s := newKindSite(t, webapp.Policy{})
	for name, test := range map[string]struct{ body, want string }{
		"objects first":      {`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"objects":[{}],"uid":"7","desiredAPIVersion":"apps.plimsoll.dev/v1"}}`, "request.desiredAPIVersion: must come before request.objects"},
		"objects twice":      {strings.TrimSuffix(fmt.Sprintf(twoOld, "apps.plimsoll.dev/v1"), "}}") + `,"objects":[]}}`, "request.objects: must be set exactly once"},
		"the kind last":      {`{"request":{"uid":"7","desiredAPIVersion":"apps.plimsoll.dev/v1","objects":[]},"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`, "must be a ConversionReview"},
		"more than a review": {fmt.Sprintf(twoOld, "apps.plimsoll.dev/v1") + "{}", "the body is not a ConversionReview"},
		"half of one":        {fmt.Sprintf(twoOld, "apps.plimsoll.dev/v1")[:300], "the body is not a ConversionReview"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			response := s.convert(t, test.body)
			g.Expect(response.Result.Status).To(Equal(metav1.StatusFailure))
			g.Expect(response.Result.Message).To(ContainSubstring(test.want))
			g.Expect(response.ConvertedObjects).To(BeEmpty())
		})
	}
}

// A conversion that has nothing to change may return the very object it was given.
func TestAConversionMayReturnItsObject(t *testing.T) {
	g := NewWithT(t)
	s := newKindSite(t, webapp.Policy{})
	s.kinds[0].Convert = func(object []byte, _ string) ([]byte, error) { return object, nil }
	response := s.convert(t, fmt.Sprintf(twoOld, "apps.plimsoll.dev/v1"))
	g.Expect(response.Result.Status).To(Equal(metav1.StatusSuccess))
	g.Expect(response.ConvertedObjects).To(HaveLen(2))
	for i, name := range []string{"a", "b"} {
		var app metav1.PartialObjectMetadata
		g.Expect(json.Unmarshal(response.ConvertedObjects[i].Raw, &app)).To(Succeed())
		g.Expect(app.Name).To(Equal(name))
	}
}

func TestAConversionThatPanicsCostsItsCall(t *testing.T) {
	g := NewWithT(t)
	s := newKindSite(t, webapp.Policy{})
	s.kinds[0].Convert = func([]byte, string) ([]byte, error) { panic("secret-of-a-tenant") }
	response := s.convert(t, fmt.Sprintf(twoOld, "apps.plimsoll.dev/v1"))
	g.Expect(response.Result.Status).To(Equal(metav1.StatusFailure))
	g.Expect(response.Result.Message).To(ContainSubstring("objects[0]: the conversion failed in the hub"))
	g.Expect(s.log.String()).To(ContainSubstring("panicked"))
	g.Expect(s.log.String()).NotTo(ContainSubstring("secret-of-a-tenant"))
}

func FuzzConversionReview(f *testing.F) {
	s := newKindSite(f, webapp.Policy{})
	f.Add([]byte(fmt.Sprintf(twoOld, "apps.plimsoll.dev/v1")))
	f.Add([]byte(`{"request":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		response := s.convert(t, string(body))
		var review apiextensionsv1.ConversionReview
		switch is := response.Result.Status; {
		case is != metav1.StatusSuccess && is != metav1.StatusFailure:
			t.Errorf("status %q", is)
		case is == metav1.StatusSuccess && json.Unmarshal(body, &review) != nil:
			t.Error("was converted, and is none that Kubernetes reads")
		case is == metav1.StatusSuccess && len(response.ConvertedObjects) != len(review.Request.Objects):
			t.Errorf("%d objects of %d", len(response.ConvertedObjects), len(review.Request.Objects))
		}
	})
}

func TestCallsAboutWebAppsNeedTheMembersToken(t *testing.T) {
	g := NewWithT(t)
	s := newKindSite(t, webapp.Policy{})
	for _, path := range []string{"/webhook/v1/members/eu/wrong/convert", "/webhook/v1/members/us/" + s.converter + "/convert", "/webhook/v1/members/eu/" + s.token + "/convert",
		"/webhook/v1/members/eu/wrong/webapps/validate", "/webhook/v1/members/eu/wrong/webapps/default"} {
		g.Expect(s.post(path, []byte(`{}`)).Code).To(Equal(http.StatusNotFound), path)
	}
}

func TestACallAboutWebAppsThatIsTooLargeIsRefused(t *testing.T) {
	g := NewWithT(t)
	s := newKindSite(t, webapp.Policy{})
	for _, call := range []string{"/webapps/validate", "/webapps/default"} {
		g.Expect(s.post(s.at(call), make([]byte, calls.MaxBody+1)).Code).To(Equal(http.StatusRequestEntityTooLarge), call)
	}
}

// admission posts an admission call about a WebApp.
func (s *kindSite) admission(t testing.TB, call, subResource, object, old string) admissionv1.AdmissionResponse {
	t.Helper()
	g := NewWithT(t)
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"7","name":"shop",` +
		`"resource":{"group":"apps.plimsoll.dev","version":"v1","resource":"webapps"},"subResource":"` + subResource + `","object":` + object
	if old != "" {
		body += `,"oldObject":` + old
	}
	answer := s.post("/webhook/v1/members/eu/"+s.token+"/webapps/"+call, []byte(body+"}}"))
	g.Expect(answer.Code).To(Equal(http.StatusOK))
	var review admissionv1.AdmissionReview
	g.Expect(json.Unmarshal(answer.Body.Bytes(), &review)).To(Succeed())
	g.Expect(review.Response).NotTo(BeNil())
	return *review.Response
}

const untagged = `{"metadata":{"name":"shop"},"spec":{"containers":[{"name":"web","image":"nginx"}]}}`

func TestAWebAppIsJudgedByThePolicy(t *testing.T) {
	g := NewWithT(t)
	strict := newKindSite(t, webapp.Policy{Images: webapp.ImagesDenied, MaxReplicas: 5})
	refused := strict.admission(t, "validate", "", untagged, "")
	g.Expect(refused.Allowed).To(BeFalse())
	g.Expect(refused.UID).To(BeEquivalentTo("7"))
	g.Expect(refused.Result.Code).To(BeEquivalentTo(http.StatusUnprocessableEntity))
	g.Expect(refused.Result.Message).To(Equal(`WebApp.apps.plimsoll.dev "shop" is invalid: spec.containers[0].image: Invalid value: "nginx": ` +
		`must have a tag or a digest (modules.webapp.imagePolicy of the hub is deny)`))
	g.Expect(refused.Result.Details.Causes).To(HaveLen(1))

	kept := strict.admission(t, "validate", "", untagged, untagged)
	g.Expect(kept.Allowed).To(BeTrue())
	g.Expect(kept.Warnings).To(HaveLen(1))

	g.Expect(strict.admission(t, "validate", "scale", `{"spec":{"replicas":6}}`, "").Allowed).To(BeFalse())
	g.Expect(strict.admission(t, "validate", "scale", `{"spec":{"replicas":5}}`, "").Allowed).To(BeTrue())

	lenient := newKindSite(t, webapp.Policy{Images: webapp.ImagesAllowed})
	g.Expect(lenient.admission(t, "validate", "", untagged, "")).To(And(HaveField("Allowed", true), HaveField("Warnings", BeEmpty())))
}

func TestAWebAppGetsTheUsualLabelByPatch(t *testing.T) {
	g := NewWithT(t)
	s := newKindSite(t, webapp.Policy{})
	older := `{"apiVersion":"admission.k8s.io/v1","request":{"resource":{"group":"apps.plimsoll.dev","version":"v1alpha1","resource":"webapps"},` +
		`"object":{"metadata":{"name":"shop"},"spec":{"image":7}}}}`
	path := "/webhook/v1/members/eu/" + s.token + "/webapps/"
	g.Expect(s.post(path+"default", []byte(older)).Body.String()).To(ContainSubstring(`"allowed":true,"patch"`), "in every version, whatever is wrong with it")
	g.Expect(s.post(path+"validate", []byte(older)).Body.String()).To(ContainSubstring(`"allowed":false`))
	for object, patch := range map[string]string{
		untagged: `[{"op":"add","path":"/metadata/labels","value":{"app.kubernetes.io/name":"shop"}}]`,
		`{"metadata":{"name":"shop","labels":{"a":"b"}},"spec":{}}`:                      `[{"op":"add","path":"/metadata/labels/app.kubernetes.io~1name","value":"shop"}]`,
		`{"metadata":{"name":"shop","labels":{"app.kubernetes.io/name":"x"}},"spec":{}}`: ``,
		`{"metadata":{"name":"shop","labels":{"app.kubernetes.io/name":"x"}},"spec":7}`:  ``,
	} {
		response := s.admission(t, "default", "", object, "")
		g.Expect(response.Allowed).To(BeTrue())
		if patch == "" {
			g.Expect(response.Patch).To(BeEmpty())
		} else {
			g.Expect(response.Patch).To(MatchJSON(patch))
		}
	}
}

func TestAnAdmissionOfGarbageIsRefusedAndSaysWhy(t *testing.T) {
	g := NewWithT(t)
	s := newKindSite(t, webapp.Policy{})
	response := s.admission(t, "validate", "", `{"spec":7}`, "")
	g.Expect(response.Allowed).To(BeFalse())
	g.Expect(response.Result.Message).To(Equal("object: not a WebApp"))
	response = s.admission(t, "default", "", `{"metadata":7}`, "")
	g.Expect(response.Allowed).To(BeTrue(), "the API server says more of what is wrong, after us")
	g.Expect(response.Patch).To(BeEmpty())
	for _, call := range []string{"validate", "default"} {
		for _, body := range []string{`{}`, `no`, `{"apiVersion":"admission.k8s.io/v1","request":{"resource":{"resource":"pods"}}}`} {
			answer := s.post("/webhook/v1/members/eu/"+s.token+"/webapps/"+call, []byte(body))
			g.Expect(answer.Body.String()).To(ContainSubstring(`"allowed":false`))
		}
	}
}

// panicker is a reviewer with a bug.
type panicker struct{ webapp.Policy }

func (panicker) Review(*v1.WebApp, *v1.WebApp) (field.ErrorList, []string) { panic("s3cret") }

func TestAPanicCostsItsCallAndTellsNothing(t *testing.T) {
	g := NewWithT(t)
	s := newKindSite(t, panicker{})
	body := `{"apiVersion":"admission.k8s.io/v1","request":{"resource":{"group":"apps.plimsoll.dev","version":"v1","resource":"webapps"},"object":` + untagged + `}}`
	answer := s.post("/webhook/v1/members/eu/"+s.token+"/webapps/validate", []byte(body))
	g.Expect(answer.Code).To(Equal(http.StatusInternalServerError))
	g.Expect(s.log.String()).To(And(ContainSubstring("panicked"), Not(ContainSubstring("s3cret"))))
}

func TestPodsAndWebAppsAreAnsweredBesideEachOther(t *testing.T) {
	g := NewWithT(t)
	s := newKindSite(t, webapp.Policy{})
	pods := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for path, want := range map[string]int{"/pods": http.StatusTeapot, "/convert": http.StatusOK, "/webapps/validate": http.StatusOK} {
		answer := httptest.NewRecorder()
		s.Beside(pods).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, s.at(path), strings.NewReader(`{}`)))
		g.Expect(answer.Code).To(Equal(want), path)
	}
}

// Wherever a call is refused, its refusal counts; that of a call that is in order does not.
func TestEveryRefusalOfACallAboutAKindCounts(t *testing.T) {
	s := newKindSite(t, webapp.Policy{})
	s.refusals = calls.NewRefusals()
	crowded := func() (answer *httptest.ResponseRecorder) {
		synctest.Test(t, func(t *testing.T) { // it waits for others
			s.turns.all.TryAcquire(maxBytes)
			defer s.turns.all.Release(maxBytes)
			answer = s.post(s.at("/convert"), []byte("{}"))
		})
		return answer
	}
	for name, call := range map[string]struct {
		send   func() *httptest.ResponseRecorder
		counts float64
	}{
		"a conversion": {func() *httptest.ResponseRecorder {
			return s.post(s.at("/convert"), []byte(fmt.Sprintf(twoOld, "apps.plimsoll.dev/v1")))
		}, 0},
		"others' conversions":       {crowded, 0},
		"no conversion":             {func() *httptest.ResponseRecorder { return s.post(s.at("/convert"), []byte("[")) }, 1},
		"a conversion, wrong token": {func() *httptest.ResponseRecorder { return s.post("/webhook/v1/members/eu/1/convert", nil) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			pace := s.refusals.Pace("eu")
			pace.SetLimit(0) // nothing comes back meanwhile
			before := pace.Tokens()
			call.send()
			NewWithT(t).Expect(before - pace.Tokens()).To(Equal(call.counts))
		})
	}
}
