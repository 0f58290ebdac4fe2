package hub

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/hub/leadership"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// changing is an ownership that a test changes.
type changing struct {
	fixed
	refusal error
	tell    func()
}

func (c *changing) MayWrite(string) error { return c.refusal }
func (c *changing) BeginWrite(string) (time.Time, func(), error) {
	return time.Time{}, func() {}, c.refusal
}
func (c *changing) MineAny() bool      { return c.refusal == nil }
func (c *changing) Subscribe(f func()) { c.tell = f }

func newTestHolds(t *testing.T) (*holds, *changing, *reconcile.Runtime) {
	t.Helper()
	rt, err := reconcile.NewRuntime(reconcile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log, owns := slog.New(slog.DiscardHandler), &changing{refusal: errors.New("replica b at 10.0.0.2:1 holds the Lease")}
	g := &holds{runtime: rt, ownership: owns, peers: newPeers(nil, log), log: log}
	g.follow()
	return g, owns, rt
}

func TestQueuesRunOnlyWhileTheReplicaOwnsTheMembers(t *testing.T) {
	g, owns, rt := newTestHolds(t)
	if _, held := rt.Held("a"); !held {
		t.Error("queues run before it is known who owns the members")
	}
	owns.tell()
	if reason, held := rt.Held("a"); !held || reason != "replica b at 10.0.0.2:1 holds the Lease" {
		t.Errorf("held: %t, because %q", held, reason)
	}
	owns.refusal = nil
	owns.tell()
	if reason, held := rt.Held("a"); held {
		t.Errorf("held by the owner, because %q", reason)
	}
	g.stop()
	owns.tell() // a last renewal must not open what was closed for good
	if reason, held := rt.Held("a"); !held || reason != "this replica stops" {
		t.Errorf("held: %t, because %q", held, reason)
	}
	if g.stopped() == nil {
		t.Error("it does not say that it stops")
	}
}

func TestAMemberThatDoesNotAnswerIsHeldUntilItDoesOrIsForgotten(t *testing.T) {
	g, owns, rt := newTestHolds(t)
	owns.refusal = nil
	owns.tell()
	event := clusters.Event{Status: clusters.Status{Name: "a", Reason: "Timeout"}, BreakerOpen: true}
	g.member(event)
	if reason, held := rt.Held("a"); !held || !strings.Contains(reason, "Timeout") {
		t.Errorf("held: %t, because %q", held, reason)
	}
	if _, held := rt.Held("b"); held {
		t.Error("another member is held as well")
	}
	event.BreakerOpen = false
	g.member(event)
	if _, held := rt.Held("a"); held {
		t.Error("held though it answers again")
	}
	event.BreakerOpen = true
	g.member(event)
	event.Removed = true
	g.member(event)
	if _, held := rt.Held("a"); held {
		t.Error("a member that was unregistered left a hold for the next of its name")
	}
}

func onLoopback() config.Config {
	config := config.Default()
	config.API.GRPCAddress, config.API.RESTAddress, config.Peer.Address = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	config.Metrics.Address, config.Probes.Address = "127.0.0.1:0", "127.0.0.1:0"
	config.Webhook.BindAddress, config.Webhook.Port = "127.0.0.1", 0
	return config
}

func TestAPortInUseStopsTheStartNamingTheKey(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	config := onLoopback()
	config.Metrics.Address = taken.Addr().String()
	_, err = New(t.Context(), config, WithEnvironment(nil))
	if err == nil || !strings.HasPrefix(err.Error(), "metrics.address: ") {
		t.Errorf("got %v", err)
	}
}

func TestAHubClusterThatCannotBeReachedStopsTheStart(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := gone.Addr().String()
	_ = gone.Close()
	_, err = New(t.Context(), onLoopback(), WithEnvironment(nil), WithHubCluster(&rest.Config{Host: "https://" + address}))
	if err == nil || !strings.HasPrefix(err.Error(), "hub cluster: ") {
		t.Errorf("got %v", err)
	}
}

func TestWithoutAHubClusterTheErrorSaysWhatToSet(t *testing.T) {
	_, err := New(t.Context(), onLoopback(), WithEnvironment(nil))
	if err == nil || !strings.Contains(err.Error(), "hub.kubeconfig") || !strings.Contains(err.Error(), "KUBECONFIG") {
		t.Errorf("got %v", err)
	}
}

func TestWhereOthersReachThisReplica(t *testing.T) {
	bound := &net.TCPAddr{IP: net.IPv6unspecified, Port: 9444}
	conf := config.Default()
	for _, test := range []struct {
		advertise string
		environ   []string
		want      string
	}{
		{"10.0.0.9:1", []string{"POD_IP=10.0.0.7"}, "10.0.0.9:1"},
		{"", []string{"POD_IP=10.0.0.7"}, "10.0.0.7:9444"},
		{"", []string{"POD_IP=fd00::7"}, "[fd00::7]:9444"},
		{"", nil, "127.0.0.1:9444"},
	} {
		conf.Peer.Advertise = test.advertise
		if got := advertised(&conf, test.environ, bound); got != test.want {
			t.Errorf("%q %v: got %s, want %s", test.advertise, test.environ, got, test.want)
		}
		if identity := newIdentity(&config.Config{}, append(test.environ, "POD_NAME=hub_0/x"), test.want); leadership.AddressOf(identity) != test.want || leadership.NameOf(identity) != "hub-0-x" {
			t.Errorf("identity %s gives %q of %q", identity, leadership.AddressOf(identity), leadership.NameOf(identity))
		}
	}
}

func TestAForeignIdentityHasNoAddress(t *testing.T) {
	for _, identity := range []string{"", "somebody", "pod_uuid/", "pod_uuid/10.0.0.1"} {
		if address := leadership.AddressOf(identity); address != "" {
			t.Errorf("%q gives %q", identity, address)
		}
	}
}

func TestAWriteMayTakeAThirdOfTheLeaseAtMost(t *testing.T) {
	config := config.Default()
	for lease, want := range map[time.Duration]time.Duration{5 * time.Second: 5 * time.Second / 3, 15 * time.Second: 5 * time.Second, time.Minute: 10 * time.Second} {
		config.LeaderElection.LeaseDuration = lease
		if got := writeTimeout(&config); got != want {
			t.Errorf("lease %s: a write may take %s, want %s", lease, got, want)
		}
	}
	config.LeaderElection.Enabled = false
	if got := writeTimeout(&config); got != config.Clusters.RequestTimeout {
		t.Errorf("without a Lease a write may take %s", got)
	}
}
