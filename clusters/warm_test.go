package clusters

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

// Each attempt costs what is allowed, so attempts become seldom.
func TestAKindThatIsTooLargeIsTriedLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var attempts atomic.Int64
		wire := intake.RoundTripper(func(*http.Request) (*http.Response, error) {
			attempts.Add(1)
			return nil, intake.ErrTooLarge
		})
		prober, err := newProber(&rest.Config{Host: "https://a"}, httpClient(wire))
		g.Expect(err).NotTo(HaveOccurred())
		w := &warmer{
			member: "a", prober: prober, timeout: time.Minute, retry: Options{RetryMin: time.Second, RetryMax: time.Minute}.backoff(),
			changed: func() {}, log: slog.New(slog.DiscardHandler),
			mapper: &mapper{
				prober: prober, known: map[schema.GroupVersionKind]*meta.RESTMapping{},
				served: map[schema.GroupVersion]served{}, missing: map[schema.GroupVersion]missing{},
			},
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.keep(ctx, newMemberKind(declaredKind{Kind: podKind, gvk: corev1.SchemeGroupVersion.WithKind("Pod")}))
		}()
		time.Sleep(time.Minute)
		g.Expect(attempts.Load()).To(BeNumerically(">=", 5), "it may have been a mistake")
		time.Sleep(time.Hour)
		before := attempts.Load()
		const hours = 10
		time.Sleep(hours * time.Hour)
		// A pause is ten times the longest one after other faults, and at most a fifth more.
		g.Expect(attempts.Load() - before).To(And(BeNumerically(">=", hours*6*5/6-1), BeNumerically("<=", hours*6+1)))
		stop()
		<-ended
	})
}
