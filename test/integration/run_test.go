package integration

import (
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// A cluster is all that `make run` needs: nothing is made in it before.
func TestTheHubOfMakeRunNeedsNothingButACluster(t *testing.T) {
	fleets.beside(t)
	g := NewWithT(t)
	cluster := kube.New(t, kube.Options{Name: "run", Minimal: true})
	config, err := config.Load("../../tools/run.yaml", nil)
	g.Expect(err).NotTo(HaveOccurred())
	config.Webhook.Port = 0 // others on this machine may run one
	g.Expect(fleet.FreeAddresses(&config.API.GRPCAddress, &config.API.RESTAddress, &config.Peer.Address, &config.Metrics.Address, &config.Probes.Address)).To(Succeed())
	log := &hubLog{t: t, name: "run"}
	t.Cleanup(log.keep)
	ctx, stop := context.WithCancel(t.Context())
	made, err := hub.New(ctx, config, hub.WithLog(hub.Logger(config.Log, log)), hub.WithEnvironment(nil), hub.WithHubCluster(cluster.Config()),
		hub.WithController(webapp.Module()))
	g.Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- made.Run(ctx) }()
	g.Eventually(func() (int, error) {
		response, err := http.Get("http://" + config.Probes.Address + "/readyz")
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}).WithTimeout(patience).Should(Equal(http.StatusOK))
	stop()
	g.Expect(<-ended).To(Succeed())
	g.Expect(log.count("level=INFO", "msg=")).NotTo(BeZero(), "its log is text")
}
