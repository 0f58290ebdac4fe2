package webhook

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
)

func TestCallsOfOneMemberWaitBeforeTheyHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		turns := newTurns()
		var held []func()
		for range 2 {
			giveBack, err := turns.take(t.Context(), "greedy", maxKindBytesOfMember/2)
			g.Expect(err).NotTo(HaveOccurred())
			held = append(held, giveBack)
		}
		_, err := turns.take(t.Context(), "greedy", 1)
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		other, err := turns.take(t.Context(), "modest", maxConversion)
		g.Expect(err).NotTo(HaveOccurred())
		other()
		waiting := make(chan error, 1)
		go func() {
			giveBack, err := turns.take(t.Context(), "greedy", 1)
			if err == nil {
				giveBack()
			}
			waiting <- err
		}()
		time.Sleep(time.Second)
		held[0]()
		g.Expect(<-waiting).To(Succeed())
		held[1]()
		time.Sleep(time.Minute)
		last, err := turns.take(t.Context(), "modest", 1)
		g.Expect(err).NotTo(HaveOccurred())
		last()
		g.Expect(turns.members).To(BeEmpty(), "nothing is kept of members without calls")
	})
}

func TestThePodsOfOneMemberThatAreBeingReadAreBounded(t *testing.T) {
	g := NewWithT(t)
	metrics, err := NewMetrics(prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	var begun []*memberMetrics
	for {
		of, ok := metrics.begin("greedy", largeCall)
		if !ok {
			break
		}
		begun = append(begun, of)
	}
	g.Expect(begun).To(HaveLen(maxPodBytesOfMember / largeCall))
	of, ok := metrics.begin("modest", largeCall)
	g.Expect(ok).To(BeTrue())
	metrics.end(of, largeCall)
	for _, of := range begun {
		metrics.end(of, largeCall)
	}
	g.Expect(metrics.reading.Load()).To(BeZero())
	g.Expect(metrics.of("greedy").reading.Load()).To(BeZero())
}

func TestLargeCallsOfOneMemberAreReadAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		metrics, err := NewMetrics(prometheus.NewRegistry())
		g.Expect(err).NotTo(HaveOccurred())
		begin := func(member string, bytes int64) bool {
			of, ok := metrics.begin(member, bytes)
			if ok {
				metrics.end(of, bytes)
			}
			return ok
		}
		read := 0
		for ; begin("greedy", maxBody); read++ {
		}
		g.Expect(read).To(Equal(largeBurst / maxBody))
		g.Expect(begin("greedy", largeCall)).To(BeTrue(), "its usual calls are read")
		g.Expect(begin("modest", maxBody)).To(BeTrue(), "so are those of others")
		const left = largeBurst % maxBody
		time.Sleep(time.Second)
		for range (left + largeRate) / maxBody {
			g.Expect(begin("greedy", maxBody)).To(BeTrue())
		}
		g.Expect(begin("greedy", maxBody)).To(BeFalse())
	})
}

func TestLargeCallsAboutWebAppsOfOneMemberWaitForTimeToPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, turns := NewWithT(t), newTurns()
		take := func(member string, bytes int64) error {
			giveBack, err := turns.take(t.Context(), member, bytes)
			if err == nil {
				giveBack()
			}
			return err
		}
		began := time.Now()
		for read := int64(0); read < largeKindBurst; read += maxConversion {
			g.Expect(take("greedy", maxConversion)).To(Succeed())
		}
		g.Expect(time.Since(began)).To(BeZero())
		g.Expect(take("greedy", largeCall)).To(Succeed())
		g.Expect(take("modest", maxConversion)).To(Succeed())
		g.Expect(time.Since(began)).To(BeZero(), "its usual calls and those of others do not wait")
		g.Expect(take("greedy", maxConversion)).To(Succeed())
		g.Expect(time.Since(began)).To(Equal(time.Second * maxConversion / largeKindRate))
		g.Expect(take("greedy", maxConversion)).To(Succeed())
		waits := make(chan error)
		go func() { waits <- take("greedy", maxConversion) }()
		synctest.Wait()
		g.Expect(take("greedy", maxConversion)).NotTo(Succeed(), "its turn would come too late")
		g.Expect(<-waits).To(Succeed())
	})
}

func TestACallSaysHowLongItIs(t *testing.T) {
	g := NewWithT(t)
	g.Expect(refusedLength(-1, 10)).To(Equal(http.StatusLengthRequired))
	g.Expect(refusedLength(11, 10)).To(Equal(http.StatusRequestEntityTooLarge))
	g.Expect(refusedLength(10, 10)).To(BeZero())
}

// listOf is a conversion that costs its sender nothing: the same object over and over.
func listOf(object string, bytes int) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"apps.plimsoll.dev/v1","objects":[` +
		strings.Repeat(object+",", bytes/(len(object)+1)) + object + `]}}`
}

func TestAConversionThatIsRefusedIsReadNoFurther(t *testing.T) {
	const app = `{"apiVersion":"apps.plimsoll.dev/v1","kind":"WebApp","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"a:1"}]}}`
	large := `{"a":"` + strings.Repeat("b", 2*maxObject) + `"}`
	for what, c := range map[string]struct {
		body    string
		most    int64 // bytes read
		status  int
		message string
	}{
		"values":          {listOf(`0`, maxConversion-1024), readAhead, http.StatusOK, "objects[0]: not a Kubernetes object"},
		"empty objects":   {listOf(`{}`, maxConversion-1024), readAhead, http.StatusOK, `objects[0]: kind: \"\"`},
		"lists":           {listOf(`[[]]`, maxConversion-1024), readAhead, http.StatusOK, "objects[0]: not a Kubernetes object"},
		"a large object":  {listOf(large, 0), maxObject + 2*readAhead, http.StatusOK, "objects[0]: a value: must have at most 3145728 bytes"},
		"a large field":   {`{"request":{"other":` + large + `}}`, maxObject + 2*readAhead, http.StatusOK, "a value: must have at most 3145728 bytes"},
		"a long name":     {`{"` + strings.Repeat("b", 2*maxObject) + `":1}`, maxObject + 2*readAhead, http.StatusOK, "a value: must have at most 3145728 bytes"},
		"white space":     {strings.Repeat(" ", maxConversion), maxObject + 2*readAhead, http.StatusOK, "a value: must have at most 3145728 bytes"},
		"depth":           {strings.Repeat("[", maxConversion), maxObject, http.StatusOK, "the body is no ConversionReview"},
		"depth in fields": {`{"a":` + strings.Repeat("[", maxConversion-8), maxObject, http.StatusOK, "the body is no ConversionReview"},
		"no JSON":         {`{`, 1, http.StatusOK, "the body is no ConversionReview"},
		"too many bytes":  {listOf(app, maxConversion+1), 0, http.StatusRequestEntityTooLarge, ""},
		"good objects":    {listOf(app, 1<<20), 2 << 20, http.StatusOK, `"Success"`},
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
		"/convert": strings.NewReader(listOf(strings.Replace(app, "VERSION", "v1beta1", 1), 0)),
	} {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, h.at(call), body))
		g.Expect(answer.Code).To(Equal(http.StatusOK), call)
	}
}

func TestConnectionsThatAreTooManyAreClosed(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	capped := &cappedListener{listener, newPlaces(2, 3)}
	accepted := make(chan net.Conn, 10)
	go func() {
		defer close(accepted)
		for {
			conn, err := capped.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	dial := func(from string) net.Conn {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(t.Context(), "tcp", listener.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	refused := func(conn net.Conn) {
		_, err := conn.Read(make([]byte, 1))
		g.Expect(err).To(HaveOccurred(), "it is closed at once")
	}
	dial("127.0.0.1")
	dial("127.0.0.1")
	first := <-accepted
	<-accepted
	refused(dial("127.0.0.1"))
	dial("127.0.0.2")
	<-accepted
	refused(dial("127.0.0.2"))
	g.Expect(first.Close()).To(Succeed())
	g.Expect(first.Close()).NotTo(Succeed(), "and it does not make room twice")
	dial("127.0.0.3")
	<-accepted
	refused(dial("127.0.0.3"))
	g.Expect(listener.Close()).To(Succeed())
	for range accepted {
		t.Error("a connection too many")
	}
}
