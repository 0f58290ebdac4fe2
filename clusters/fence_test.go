package clusters

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

// countingFence lets every write begin, and counts those under way.
type countingFence struct {
	until    time.Time
	underway atomic.Int32
}

func (f *countingFence) BeginWrite(string) (time.Time, func(), error) {
	f.underway.Add(1)
	return f.until, func() { f.underway.Add(-1) }, nil
}

// evict sends an eviction through the fence with a time-out of 5 s.
func evict(fence Fence, wire intake.RoundTripper) error {
	client := fenced("a", fence, 5*time.Second, limited("a", transportOptions{requestTimeout: time.Minute, writeTimeout: 5 * time.Second}, 0, wire))
	req, err := http.NewRequest(http.MethodPost, "https://a.example/api/v1/namespaces/x/pods/y/eviction", nil)
	if err != nil {
		return err
	}
	resp, err := client.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

func answered(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
}

// A process that is stopped between the fence's answer and the request goes on where it was.
func TestAWriteAfterAFreezeIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		sent := false
		err := evict(FenceFunc(func(string) error {
			time.Sleep(20 * time.Second) // the freeze
			return nil
		}), func(req *http.Request) (*http.Response, error) {
			sent = true
			return answered(req)
		})
		g.Expect(err).To(MatchError(ErrNotOwner))
		g.Expect(NotSent(err)).To(BeTrue())
		g.Expect(sent).To(BeFalse())
	})
}

func TestAWriteHasNoMoreTimeThanItsPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		fence := &countingFence{until: time.Now().Add(2 * time.Second)}
		var query string
		began := time.Now()
		err := evict(fence, func(req *http.Request) (*http.Response, error) {
			query = req.URL.RawQuery
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		var timeout interface{ Timeout() bool }
		g.Expect(errors.As(err, &timeout) && timeout.Timeout()).To(BeTrue(), "error: %v", err)
		g.Expect(time.Since(began)).To(Equal(2 * time.Second))
		g.Expect(query).To(Equal("timeout=2s"), "the server gives up when nobody waits any more")
	})
}

func TestAWriteIsUnderWayUntilItCanNoLongerTakeEffect(t *testing.T) {
	for name, test := range map[string]struct {
		wire   intake.RoundTripper
		counts time.Duration // how long it counts after the call
	}{
		"answered": {wire: answered},
		"never sent": {wire: func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
		}},
		"not answered": {wire: func(*http.Request) (*http.Response, error) { return nil, errors.New("connection lost") }, counts: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				fence := &countingFence{}
				began := time.Now()
				_ = evict(fence, func(req *http.Request) (*http.Response, error) {
					g.Expect(fence.underway.Load()).To(BeEquivalentTo(1))
					return test.wire(req)
				})
				for fence.underway.Load() > 0 {
					time.Sleep(100 * time.Millisecond)
					synctest.Wait()
				}
				g.Expect(time.Since(began)).To(Equal(test.counts))
			})
		})
	}
}

func TestACallersOwnTimeoutOnTheServerStaysWhenItIsShorter(t *testing.T) {
	g := NewWithT(t)
	for asked, want := range map[string]string{"": "timeout=5s", "timeout=1s": "timeout=1s", "timeout=1m": "timeout=5s"} {
		req, err := http.NewRequest(http.MethodDelete, "https://a.example/api/v1/namespaces/x/pods/y?"+asked, nil)
		g.Expect(err).NotTo(HaveOccurred())
		limitOnServer(req, 5*time.Second)
		g.Expect(req.URL.RawQuery).To(Equal(want))
	}
}
