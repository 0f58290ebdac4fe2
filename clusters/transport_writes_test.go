package clusters

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

func TestAWriteHasATimeoutOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	hangs := intake.RoundTripper(func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	})
	client := limited("a", transportOptions{requestTimeout: time.Hour, writeTimeout: time.Millisecond}, 0, hangs)
	req, err := http.NewRequest(http.MethodPatch, "https://a.example/api/v1/namespaces/x/pods/y", nil)
	g.Expect(err).NotTo(HaveOccurred())
	resp, err := client.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	g.Expect(err).To(MatchError(ContainSubstring("no complete answer within 1ms")))
}
