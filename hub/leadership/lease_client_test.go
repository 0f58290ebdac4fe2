package leadership

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

func TestRenewalsShareNeitherLimitsNorConnectionWithOtherRequests(t *testing.T) {
	protocol := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol <- r.Proto
		http.NotFound(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	busy := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, RateLimiter: flowcontrol.NewFakeNeverRateLimiter()}
	client, err := leaseClient(busy, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = client.Leases("x").Get(t.Context(), "y", metav1.GetOptions{}) // it is not found
	select {
	case got := <-protocol:
		if got != "HTTP/1.1" {
			t.Errorf("renewed over %s", got)
		}
	default:
		t.Error("the request waited for the limits of others, and was never sent")
	}
}

func TestARenewalThatHangsIsTriedAgainOnAnotherConnection(t *testing.T) {
	var first atomic.Pointer[string]
	hang := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first.CompareAndSwap(nil, &r.RemoteAddr) || *first.Load() == r.RemoteAddr {
			<-hang
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	defer close(hang)
	client, err := leaseClient(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	answered := false
	for try := 0; try < 20 && !answered; try++ {
		_, _ = client.Leases("x").Get(t.Context(), "y", metav1.GetOptions{})
		answered = first.Load() != nil && isAnswered(client.Leases("x").Get(t.Context(), "y", metav1.GetOptions{}))
	}
	if !answered {
		t.Error("every try waited on the connection that hangs")
	}
}

// isAnswered reports whether a server said something, if only that it found nothing.
func isAnswered(_ any, err error) bool {
	var timeout interface{ Timeout() bool }
	return err != nil && (!errors.As(err, &timeout) || !timeout.Timeout())
}
