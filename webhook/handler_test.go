package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
)

type placerFunc func(ctx context.Context, member string, pod *spot.PodRequest) spot.Placement

func (f placerFunc) Place(ctx context.Context, member string, pod *spot.PodRequest) spot.Placement {
	return f(ctx, member, pod)
}

// Reads reports that it looks at everything.
func (f placerFunc) Reads([]byte) bool { return true }

type routerFunc func(member string) (bool, string)

func (f routerFunc) Route(member string) (bool, string) { return f(member) }

const spotPatch = `[{"op":"add","path":"/metadata/labels/plimsoll.dev~1slot","value":"3"}]`

var inSpot = spot.Placement{Outcome: spot.OutcomeSpot, Patch: []byte(spotPatch)}

func toSpot(context.Context, string, *spot.PodRequest) spot.Placement { return inSpot }

// hub is a handler with one member "eu", which it owns, and what can be seen of it.
type hub struct {
	*Handler
	token   string
	members registered
	metrics *prometheus.Registry
	log     *bytes.Buffer // everything, down to Debug
}

func newHub(t testing.TB, placer placerFunc) *hub {
	t.Helper()
	g := NewWithT(t)
	members := registered{"eu": {UID: "1"}}
	h := &hub{members: members, metrics: prometheus.NewRegistry(), log: &bytes.Buffer{}}
	metrics, err := NewMetrics(h.metrics)
	g.Expect(err).NotTo(HaveOccurred())
	tokens := NewTokens(tokenKey, members.look)
	h.token = current(g, tokens, "eu")
	h.Handler = NewHandler(HandlerOptions{
		Tokens: tokens, Placer: placer, Metrics: metrics,
		Router: routerFunc(func(string) (bool, string) { return true, "" }),
		Log:    slog.New(slog.NewJSONHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	h.refusals = nil // nobody waits for them
	return h
}

func (h *hub) path() string { return "/webhook/v1/members/eu/" + h.token + "/pods?timeout=2s" }

// call posts a body the way an API server does.
func (h *hub) call(path string, body []byte) *httptest.ResponseRecorder {
	return h.do(http.MethodPost, path, "application/json", bytes.NewReader(body))
}

func (h *hub) do(method, path, contentType string, body io.Reader) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, body)
	request.Header.Set("Content-Type", contentType)
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	return answer
}

// counted is how many calls of eu ended with the outcome.
func (h *hub) counted(outcome string) float64 {
	return testutil.ToFloat64(h.options.Metrics.admissions.WithLabelValues("eu", outcome))
}

// allowed checks that an answer lets its pod through, and returns the patch.
func allowed(g Gomega, answer *httptest.ResponseRecorder, uid string) string {
	g.Expect(answer.Code).To(Equal(http.StatusOK), answer.Body.String())
	g.Expect(answer.Header().Get("Content-Type")).To(Equal("application/json"))
	g.Expect(answer.Header().Get("Content-Length")).To(Equal(fmt.Sprint(answer.Body.Len())))
	var review admissionv1.AdmissionReview
	g.Expect(json.Unmarshal(answer.Body.Bytes(), &review)).To(Succeed())
	g.Expect(review.APIVersion + " " + review.Kind).To(Equal("admission.k8s.io/v1 AdmissionReview"))
	g.Expect(review.Request).To(BeNil())
	g.Expect(string(review.Response.UID)).To(Equal(uid))
	g.Expect(review.Response.Allowed).To(BeTrue())
	g.Expect(review.Response.Warnings).To(BeEmpty())
	if len(review.Response.Patch) == 0 {
		g.Expect(review.Response.PatchType).To(BeNil())
	} else {
		g.Expect(*review.Response.PatchType).To(Equal(admissionv1.PatchTypeJSONPatch))
	}
	return string(review.Response.Patch)
}

const recordedUID = "192a64db-836d-40b3-806b-59dd64770452"

// reviewOf is a small call for the creation of a pod.
func reviewOf(uid, more string) []byte {
	return []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"` + uid +
		`","resource":{"group":"","version":"v1","resource":"pods"},"operation":"CREATE","namespace":"shop"` + more + `}}`)
}

func TestAPodGetsThePatchThatThePlacerMadeForIt(t *testing.T) {
	g := NewWithT(t)
	var asked spot.PodRequest
	var of string
	h := newHub(t, func(_ context.Context, member string, pod *spot.PodRequest) spot.Placement {
		of, asked = member, *pod
		return inSpot
	})
	g.Expect(allowed(g, h.call(h.path(), recordedReview(t)), recordedUID)).To(Equal(spotPatch))
	g.Expect(of).To(Equal("eu"))
	g.Expect(asked.Owner.Name).To(Equal("checkout-5d6877b499"))
	g.Expect(asked.ReplicaSet).To(BeTrue())
	g.Expect(asked.DryRun).To(BeFalse())
	g.Expect(h.counted("spot")).To(Equal(1.0))
}

func TestAPodThatThePlacerLeavesAloneIsLetThroughUnchanged(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t, func(context.Context, string, *spot.PodRequest) spot.Placement {
		return spot.Placement{Outcome: spot.OutcomeNotEnabled}
	})
	g.Expect(allowed(g, h.call(h.path(), recordedReview(t)), recordedUID)).To(BeEmpty())
	g.Expect(h.counted("not_enabled")).To(Equal(1.0))
}

func TestADryRunIsPassedOnAsOneAndCountedAsOne(t *testing.T) {
	g := NewWithT(t)
	dry := false
	h := newHub(t, func(_ context.Context, _ string, pod *spot.PodRequest) spot.Placement {
		dry = pod.DryRun
		return inSpot
	})
	g.Expect(allowed(g, h.call(h.path(), reviewOf("1", `,"dryRun":true`)), "1")).To(Equal(spotPatch))
	g.Expect(dry).To(BeTrue())
	g.Expect(h.counted("dry_run")).To(Equal(1.0))
	g.Expect(h.counted("spot")).To(Equal(0.0))
}

func TestAnUnknownMemberAndAWrongTokenGetTheSameAnswerUnread(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t, toSpot)
	h.members["euro"] = h.members["eu"]
	var first *httptest.ResponseRecorder
	for _, path := range []string{
		"/webhook/v1/members/nobody/" + h.token + "/pods",
		"/webhook/v1/members/eu/" + strings.Repeat("A", 32) + "/pods",
		"/webhook/v1/members/eu/x/pods",
		"/webhook/v1/members/euro/" + h.token + "/pods",
	} {
		answer := h.do(http.MethodPost, path, "application/json", unreadable{t})
		g.Expect(answer.Code).To(Equal(http.StatusNotFound), path)
		if first == nil {
			first = answer
		}
		g.Expect(answer.Body.String()).To(Equal(first.Body.String()))
		g.Expect(answer.Header()).To(Equal(first.Header()))
	}
	g.Expect(testutil.ToFloat64(h.options.Metrics.rejected.WithLabelValues("not_found"))).To(Equal(4.0))
	g.Expect(testutil.CollectAndCount(h.options.Metrics.admissions)).To(BeZero(), "strangers make no series")
}

// unreadable fails the test when it is read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestWhatIsNoAdmissionCallIsRefused(t *testing.T) {
	h := newHub(t, func(context.Context, string, *spot.PodRequest) spot.Placement {
		t.Error("it was placed")
		return spot.Placement{}
	})
	good := string(reviewOf("1", ""))
	large := strings.Repeat(" ", calls.MaxBody+1)
	for name, test := range map[string]struct {
		method, contentType, body string
		code                      int
	}{
		"another method":       {http.MethodGet, "application/json", good, http.StatusMethodNotAllowed},
		"another content type": {http.MethodPost, "application/yaml", good, http.StatusUnsupportedMediaType},
		"no content type":      {http.MethodPost, "", good, http.StatusUnsupportedMediaType},
		"too large":            {http.MethodPost, "application/json", large, http.StatusRequestEntityTooLarge},
		"empty":                {http.MethodPost, "application/json", "", http.StatusBadRequest},
		"garbage":              {http.MethodPost, "application/json", "\x00\xff", http.StatusBadRequest},
		"cut short":            {http.MethodPost, "application/json", good[:len(good)-1], http.StatusBadRequest},
		"twice":                {http.MethodPost, "application/json", good + good, http.StatusBadRequest},
		"another kind":         {http.MethodPost, "application/json", strings.Replace(good, "AdmissionReview", "Pod", 1), http.StatusBadRequest},
		"another version":      {http.MethodPost, "application/json", strings.Replace(good, "k8s.io/v1", "k8s.io/v1beta1", 1), http.StatusBadRequest},
		"no uid":               {http.MethodPost, "application/json", string(reviewOf("", "")), http.StatusBadRequest},
		"a uid with a quote":   {http.MethodPost, "application/json", string(reviewOf(`\"`, "")), http.StatusBadRequest},
		"a uid without end":    {http.MethodPost, "application/json", string(reviewOf(strings.Repeat("a", 129), "")), http.StatusBadRequest},
		"labels that are none": {http.MethodPost, "application/json", string(reviewOf("1", `,"object":{"metadata":{"labels":[]}}`)), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(h.do(test.method, h.path(), test.contentType, strings.NewReader(test.body)).Code).To(Equal(test.code))
			// A body whose length is not known beforehand.
			if test.method == http.MethodPost {
				test.code = http.StatusLengthRequired
			}
			g.Expect(h.do(test.method, h.path(), test.contentType, io.MultiReader(strings.NewReader(test.body))).Code).To(Equal(test.code))
		})
	}
	g := NewWithT(t)
	request := httptest.NewRequest(http.MethodPost, h.path(), strings.NewReader(good))
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("Content-Encoding", "gzip")
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	g.Expect(answer.Code).To(Equal(http.StatusUnsupportedMediaType))
}

func TestACallThatSaysItIsTooLargeIsNotRead(t *testing.T) {
	h := newHub(t, toSpot)
	request := httptest.NewRequest(http.MethodPost, h.path(), unreadable{t})
	request.Header.Set("Content-Type", "application/json")
	request.ContentLength = calls.MaxBody + 1
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	NewWithT(t).Expect(answer.Code).To(Equal(http.StatusRequestEntityTooLarge))
}

func TestWhatIsNotTheCreationOfAPodIsLetThroughUnplaced(t *testing.T) {
	h := newHub(t, func(context.Context, string, *spot.PodRequest) spot.Placement {
		t.Error("it was placed")
		return spot.Placement{}
	})
	good := string(reviewOf("1", ""))
	for name, body := range map[string]string{
		"update":         strings.Replace(good, "CREATE", "UPDATE", 1),
		"no operation":   strings.Replace(good, "CREATE", "", 1),
		"another object": strings.Replace(good, `"resource":"pods"`, `"resource":"services"`, 1),
		"another group":  strings.Replace(good, `"group":""`, `"group":"example.com"`, 1),
		"a subresource":  strings.Replace(good, `"operation"`, `"subResource":"binding","operation"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(body).NotTo(Equal(good))
			g.Expect(allowed(g, h.call(h.path(), []byte(body)), "1")).To(BeEmpty())
		})
	}
	NewWithT(t).Expect(h.counted(outcomeIgnored)).To(Equal(5.0))
}

func TestACallIsTimedFromItsHeadToItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h := newHub(t, func(context.Context, string, *spot.PodRequest) spot.Placement {
			time.Sleep(100 * time.Millisecond)
			return inSpot
		})
		g.Expect(allowed(g, h.call(h.path(), recordedReview(t)), recordedUID)).To(Equal(spotPatch))
		var took dto.Metric
		g.Expect(h.options.Metrics.duration.WithLabelValues("eu").(prometheus.Metric).Write(&took)).To(Succeed())
		g.Expect(took.GetHistogram().GetSampleCount()).To(BeEquivalentTo(1))
		g.Expect(took.GetHistogram().GetSampleSum()).To(Equal(0.1))
	})
}

func TestAPlacerThatHangsCostsAPlacementAndNoPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h := newHub(t, func(ctx context.Context, _ string, _ *spot.PodRequest) spot.Placement {
			<-ctx.Done()
			return inSpot
		})
		g.Expect(allowed(g, h.call(h.path(), recordedReview(t)), recordedUID)).To(BeEmpty())
		g.Expect(h.counted(outcomeTimeout)).To(Equal(1.0))
	})
}

func TestAPlacerIsToldWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h := newHub(t, func(ctx context.Context, _ string, _ *spot.PodRequest) spot.Placement {
			<-ctx.Done()
			return spot.Placement{Outcome: spot.OutcomeUnknown}
		})
		g.Expect(allowed(g, h.call(h.path(), recordedReview(t)), recordedUID)).To(BeEmpty())
	})
}

func TestAPlacerThatPanicsCostsAPlacementAndNoPod(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t, func(context.Context, string, *spot.PodRequest) spot.Placement { panic("a bug") })
	g.Expect(allowed(g, h.call(h.path(), recordedReview(t)), recordedUID)).To(BeEmpty())
	g.Expect(h.counted(outcomeError)).To(Equal(1.0))
	g.Expect(h.log.String()).To(And(ContainSubstring("a bug"), ContainSubstring(`"member":"eu"`)))
}

func TestCallsAtOnceGetTheirOwnAnswers(t *testing.T) {
	h := newHub(t, func(_ context.Context, _ string, pod *spot.PodRequest) spot.Placement {
		return spot.Placement{Outcome: spot.OutcomeSpot, Patch: []byte(pod.RequestUID + pod.Labels["l"])}
	})
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 200 {
				g, uid, label := NewWithT(t), fmt.Sprintf("%d-%d", caller, i), strings.Repeat(fmt.Sprint(caller), 10*i)
				answer := h.call(h.path(), reviewOf(uid, `,"object":{"metadata":{"labels":{"l":"`+label+`"}}}`))
				g.Expect(allowed(g, answer, uid)).To(Equal(uid + label))
			}
		})
	}
	callers.Wait()
}

func TestTheSeriesOfAMemberGoWithIt(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t, toSpot)
	h.call(h.path(), recordedReview(t))
	g.Expect(testutil.CollectAndCount(h.metrics)).NotTo(BeZero())
	h.options.Metrics.Forget("eu")
	g.Expect(testutil.CollectAndCount(h.options.Metrics.admissions)).To(BeZero())
	g.Expect(testutil.CollectAndCount(h.options.Metrics.duration)).To(BeZero())
	h.call(h.path(), recordedReview(t))
	g.Expect(h.counted("spot")).To(Equal(1.0))
}

// The predecessor parses the whole pod and lists the namespace for each call. What ours allocates does not grow with the
// review, beyond the memory to read it into: containers, variables and volumes are passed over.
func TestWhatACallAllocatesDoesNotGrowWithItsPod(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t, toSpot)
	containers := func(n int) []byte {
		one := `{"name":"app","image":"images.example.com/app:1","env":[{"name":"A","value":"b"}],"volumeMounts":[{"name":"data","mountPath":"/data"}]}`
		return reviewOf("1", `,"object":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[`+strings.Repeat(one+",", n-1)+one+`]}}`)
	}
	allocations := func(body []byte) float64 {
		g.Expect(allowed(g, h.call(h.path(), body), "1")).To(Equal(spotPatch))
		return testing.AllocsPerRun(200, func() { h.call(h.path(), body) })
	}
	small, large := allocations(containers(1)), allocations(containers(100))
	g.Expect(large).To(BeNumerically("<", small+20), "%v with one container", small)
}

func BenchmarkHandler(b *testing.B) {
	h := newHub(b, toSpot)
	body := recordedReview(b)
	b.ReportAllocs()
	for b.Loop() {
		if answer := h.call(h.path(), body); answer.Code != http.StatusOK {
			b.Fatal(answer.Code)
		}
	}
}
