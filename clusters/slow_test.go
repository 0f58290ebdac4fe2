package clusters

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// Each of the three requests of an identification takes more than a third of the time of one.
func TestAMemberThatIsSlowIsReady(t *testing.T) {
	f, api := newFleet(t, func(o *Options) { o.ProbeTimeout = time.Second }), newFakeAPI(t, "a")
	for _, path := range []string{"/readyz", "/version", "/api/v1/namespaces/kube-system"} {
		api.answer(path, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(600 * time.Millisecond):
				api.route(w, r, nil)
			case <-r.Context().Done():
			}
		})
	}
	f.secrets.put("a", api.kubeconfig())
	f.g.Eventually(f.state("a")).Should(Equal("Ready/Ready"))
}

func TestTheLatencyOfASlowMemberIsShown(t *testing.T) {
	g := NewWithT(t)
	shown := func(latency time.Duration) string {
		return reachable(healthy(func(r *report) { r.latency = latency })).Message
	}
	g.Expect(shown(2100 * time.Millisecond)).To(Equal("the API server answers the probes, slowly: in about 2s"))
	g.Expect(shown(20 * time.Millisecond)).To(Equal("the API server answers the probes"))
}
