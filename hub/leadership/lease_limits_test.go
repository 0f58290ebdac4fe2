package leadership

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// exhausted is the rate limiter of a hub under more load than it may put on its API server.
type exhausted struct{}

func (exhausted) TryAccept() bool            { return false }
func (exhausted) Accept()                    {}
func (exhausted) Stop()                      {}
func (exhausted) QPS() float32               { return 0 }
func (exhausted) Wait(context.Context) error { return errors.New("no request is allowed") }

// Trap 14: load must not cost ownership.
func TestTheLeaseSharesNoLimitsWithTheLoad(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"plimsoll-hub"}}`))
	}))
	defer server.Close()
	shared := &rest.Config{Host: server.URL, RateLimiter: exhausted{}, QPS: 1, Burst: 1}
	client, err := leaseClient(shared, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Leases("plimsoll-system").Get(t.Context(), "plimsoll-hub", metav1.GetOptions{}); err != nil {
		t.Errorf("the Lease could not be read while the load's limits are used up: %v", err)
	}
	if shared.RateLimiter == nil || shared.QPS != 1 {
		t.Error("the configuration of everything else was changed")
	}
}
