package reconcile

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// roundTripper is an http.RoundTripper made of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAnEndpointIsAskedOnceForAllAndAgainAfterThirtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(*corev1.ConfigMap) []Dependency {
			return []Dependency{OnEndpoint("https://db.example.com/healthz")}
		})
		var asked atomic.Int32
		var fails atomic.Bool
		fails.Store(true)
		s.dependencies.Outside.Client = &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			asked.Add(1)
			time.Sleep(2 * time.Second)
			if fails.Load() {
				return nil, errors.New(canary)
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(""))}, nil
		})}
		a, leave := s.enter("a")
		for i := range 20 {
			a.add(configMap(fmt.Sprint("cm-", i)))
		}
		time.Sleep(3 * 500 * time.Millisecond)
		s.waits("a", "cm-7", "waits for https://db.example.com/healthz: it has not answered yet")
		time.Sleep(time.Second)
		s.waits("a", "cm-7", "waits for https://db.example.com/healthz: it cannot be reached")
		r, _ := s.Lookup(keyOf("c", "a", "cm-7"))
		if wait := r.NextTry.Sub(r.LastEnded); wait != outsideAgain {
			t.Errorf("next try after %s, want %s", wait, outsideAgain)
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times for 20 objects", n)
		}
		fails.Store(false)
		time.Sleep(outsideAgain + 5*time.Second)
		s.waits("a", "cm-7", "")
		if n := asked.Load(); n != 2 || s.seen.count() < 20 {
			t.Errorf("asked %d times, %d reconciles; want 2, and each of the 20 objects", n, s.seen.count())
		}
		leave()
		s.idle()
		s.cancel()
	})
}
