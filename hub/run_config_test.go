package hub

import (
	"net/netip"
	"testing"

	"github.com/plimsoll-dev/plimsoll/hub/config"
)

// What `make run` reads is a configuration, and nothing in it can be reached from elsewhere.
func TestTheConfigurationOfMakeRunStaysOnThisMachine(t *testing.T) {
	config, err := config.Load("../tools/run.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, address := range map[string]string{
		"webhook": webhookAddress(&config), "api.grpcAddress": config.API.GRPCAddress, "api.restAddress": config.API.RESTAddress,
		"peer": config.Peer.Address, "metrics": config.Metrics.Address, "probes": config.Probes.Address,
	} {
		if at, err := netip.ParseAddrPort(address); err != nil || !at.Addr().IsLoopback() {
			t.Errorf("%s listens on %s", key, address)
		}
	}
	if config.LeaderElection.Enabled || !config.API.Unauthenticated || config.Hub.Namespace != "default" {
		t.Errorf("it needs more than a cluster: %+v", config.Hub)
	}
}
