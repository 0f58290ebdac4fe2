package webhook

import (
	"context"
	"io"
	"log"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/hub/pki"
)

func TestMain(m *testing.M) {
	// A test that waits has no need to be quick: the machine may be busy with other things.
	SetDefaultEventuallyTimeout(time.Minute)
	goleak.VerifyTestMain(m)
}

// newCA creates a CA in a hub cluster of its own.
func newCA(t testing.TB) *pki.CA {
	t.Helper()
	ca, err := pki.EnsureCA(context.Background(), fake.NewClientBuilder().Build(), "plimsoll-system", "plimsoll-ca")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// anyMetrics are registered nowhere else.
func anyMetrics(t testing.TB) *Metrics {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return metrics
}

// drain reads an answer to its end, so that its connection is kept.
func drain(response *http.Response) (string, error) {
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

var discardLog = log.New(io.Discard, "", 0)
