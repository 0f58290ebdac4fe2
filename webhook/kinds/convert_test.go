package kinds

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
)

// listOf is a conversion that costs its sender nothing: the same object over and over.
func listOf(object string, bytes int) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"apps.plimsoll.dev/v1","objects":[` +
		strings.Repeat(object+",", bytes/(len(object)+1)) + object + `]}}`
}

func TestAConversionThatIsRefusedIsReadNoFurther(t *testing.T) {
	const app = `{"apiVersion":"apps.plimsoll.dev/v1","kind":"WebApp","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"a:1"}]}}`
	grows := `{"apiVersion":"apps.plimsoll.dev/v1alpha1","kind":"WebApp","metadata":{"name":"a","annotations":{"apps.plimsoll.dev/conversion-data":"` +
		`{\"spec\":{\"containers\":[` + strings.Repeat("{},", 80_000) + `{}]}}"}},"spec":{"image":"a:1"}}`
	large := `{"a":"` + strings.Repeat("b", 2*maxObject) + `"}`
	for what, c := range map[string]struct {
		body    string
		most    int64 // bytes read
		status  int
		message string
	}{
		"values":           {listOf(`0`, maxConversion-1024), readAhead, http.StatusOK, "objects[0]: not a Kubernetes object"},
		"empty objects":    {listOf(`{}`, maxConversion-1024), readAhead, http.StatusOK, `objects[0]: kind: \"\"`},
		"lists":            {listOf(`[[]]`, maxConversion-1024), readAhead, http.StatusOK, "objects[0]: not a Kubernetes object"},
		"a large object":   {listOf(large, 0), maxObject + 2*readAhead, http.StatusOK, "objects[0]: a value: must have at most 3145728 bytes"},
		"a large field":    {`{"request":{"other":` + large + `}}`, maxObject + 2*readAhead, http.StatusOK, "a value: must have at most 3145728 bytes"},
		"a long name":      {`{"` + strings.Repeat("b", 2*maxObject) + `":1}`, maxObject + 2*readAhead, http.StatusOK, "a value: must have at most 3145728 bytes"},
		"white space":      {strings.Repeat(" ", maxConversion), maxObject + 2*readAhead, http.StatusOK, "a value: must have at most 3145728 bytes"},
		"depth":            {strings.Repeat("[", maxConversion), maxObject, http.StatusOK, "the body is not a ConversionReview"},
		"depth in fields":  {`{"a":` + strings.Repeat("[", maxConversion-8), maxObject, http.StatusOK, "the body is not a ConversionReview"},
		"no JSON":          {`{`, 1, http.StatusOK, "the body is not a ConversionReview"},
		"too many bytes":   {listOf(app, maxConversion+1), 0, http.StatusRequestEntityTooLarge, ""},
		"growing objects":  {listOf(grows, 15<<20), 15 << 20, http.StatusOK, "with it what was converted has more than 50331648 bytes"},
		"a growing object": {listOf(grows, 300<<10), 600 << 10, http.StatusOK, "objects[1]: with it what was converted has more than 2883186 bytes"},
		"good objects":     {listOf(app, 1<<20), 2 << 20, http.StatusOK, `"Success"`},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			h := newKindSite(t, webapp.Policy{})
			body := &counting{from: strings.NewReader(c.body)}
			request := httptest.NewRequest(http.MethodPost, h.at("/convert"), body)
			request.ContentLength = int64(len(c.body))
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, request)
			g.Expect(answer.Code).To(Equal(c.status), "%.200s", answer.Body)
			g.Expect(answer.Body.String()).To(ContainSubstring(c.message))
			g.Expect(body.read).To(BeNumerically("<=", c.most))
			g.Expect(testutil.CollectAndCount(h.answered)).To(Equal(1))
		})
	}
}

// counting counts what is read.
type counting struct {
	from io.Reader
	read int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.read += int64(n)
	return n, err
}

func TestAWebAppOfAVerySmallQuantityCostsNothing(t *testing.T) {
	g := NewWithT(t)
	h := newKindSite(t, webapp.Policy{})
	app := `{"apiVersion":"apps.plimsoll.dev/VERSION","kind":"WebApp","metadata":{"name":"a","namespace":"b"},"spec":{"containers":[{"name":"a","image":"a:1","resources":{"Requests":{"cpu":"1e-2147483647"}}}]}}`
	for call, body := range map[string]io.Reader{
		"/webapps/validate": strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","resource":{"group":"apps.plimsoll.dev","version":"v1","resource":"webapps"},` +
			`"object":` + strings.Replace(app, "VERSION", "v1", 1) + `,"oldObject":` + strings.Replace(app, "VERSION", "v1", 1) + `}}`),
		"/convert": strings.NewReader(listOf(strings.Replace(app, "VERSION", "v1", 1), 0)), // older versions have no quantities
	} {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, h.at(call), body))
		g.Expect(answer.Code).To(Equal(http.StatusOK), call)
	}
}

// Each of its containers has a few bytes, and more than a hundred once it is decoded.
func TestAWebAppThatWouldTakeTooMuchMemoryIsRefused(t *testing.T) {
	g := NewWithT(t)
	h := newKindSite(t, webapp.Policy{})
	const head = `{"apiVersion":"apps.plimsoll.dev/VERSION","kind":"WebApp","metadata":{"name":"a"},"spec":{"containers":[`
	app := head + strings.Repeat("{},", 100_000) + `{}]}}`
	for _, call := range []string{"/webapps/validate", "/webapps/default"} {
		body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","resource":{"group":"apps.plimsoll.dev","version":"v1","resource":"webapps"},` +
			`"object":` + strings.Replace(app, "VERSION", "v1", 1) + `}}`
		g.Expect(h.post(h.at(call), []byte(body)).Code).To(Equal(http.StatusBadRequest), call)
	}
	response := h.convert(t, listOf(strings.Replace(app, "VERSION", "v1beta1", 1), 0))
	g.Expect(response.Result.Status).To(Equal(metav1.StatusFailure))
	g.Expect(response.Result.Message).To(ContainSubstring("objects[0]: too large"))
}
