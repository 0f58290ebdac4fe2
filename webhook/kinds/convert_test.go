package kinds

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
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
		`{\"status\":{\"conditions\":[` + strings.Repeat("{},", 16_000) + `{}]}}"}},"spec":{"image":"a:1"}}`
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
		"a growing object": {listOf(grows, 400<<10), 600 << 10, http.StatusOK, "objects[2]: with it what was converted has more than 2603442 bytes"},
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

// What an object carries is 256 KiB at most, and must not become as much for each of its containers, nor much more when it is decoded.
func TestWhatAnObjectCarriesIsInItsConversionOnce(t *testing.T) {
	carrying := func(names int, carried string) string {
		return `{"apiVersion":"apps.plimsoll.dev/v1beta1","kind":"WebApp","metadata":{"name":"a","annotations":{"apps.plimsoll.dev/conversion-data":` +
			strconv.Quote(carried) + `}},"spec":{"containers":[` + strings.Repeat(`{"name":"a"},`, names-1) + `{"name":"a"}]}}`
	}
	a := func(args int) string {
		return `{"spec":{"containers":[{"name":"a","args":["b"` + strings.Repeat(`,""`, args-1) + `]}]}}`
	}
	for what, c := range map[string]struct{ object, message string }{
		"many arguments":         {carrying(1000, a(30_000)), `"Success"`},
		"a long argument":        {carrying(1000, `{"spec":{"containers":[{"name":"a","args":["`+strings.Repeat("b", 200<<10)+`"]}]}}`), `"Success"`},
		"too many arguments":     {carrying(1, a(80_000)), `metadata.annotations[apps.plimsoll.dev/conversion-data]: must have at most 32768 values`},
		"too many of other type": {carrying(1, `{"spec":{"containers":[0`+strings.Repeat(`,0`, 80_000)+`]}}`), "must have at most 32768 values"},
		"too many containers":    {carrying(20_000, a(1)), "spec.containers: has 20000 items: must have at most 1000"},
		"too many sources": {strings.Replace(carrying(1, a(1)), `"spec":{"containers"`, `"spec":{"secrets":["c"`+strings.Repeat(`,"c"`, 256)+`],"containers"`, 1),
			"spec.envFrom: has 257 items: must have at most 256"},
		"too many are carried": {strings.Replace(carrying(1, `{"spec":{"containers":[{}`+strings.Repeat(`,{}`, 1000)+`]}}`), "v1beta1", "v1alpha1", 1), "spec.containers: has 1001 items"},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			h := newKindSite(t, webapp.Policy{})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answer := h.post(h.at("/convert"), []byte(listOf(c.object, 0)))
			runtime.ReadMemStats(&after)
			g.Expect(answer.Body.String()).To(ContainSubstring(c.message))
			g.Expect(strings.Count(answer.Body.String(), `"b`)).To(BeNumerically("<=", 1))
			g.Expect(after.TotalAlloc-before.TotalAlloc).To(BeNumerically("<", 64<<20), "bytes")
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
