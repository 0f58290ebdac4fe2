package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// ownershipTime is how long one step may take before the test gives up. Nothing is measured by it.
const ownershipTime = 2 * time.Minute

// shortLease lets a killed replica be succeeded soon.
var shortLease = fleet.Settings{
	"leaderElection.leaseDuration": "5s", "leaderElection.renewDeadline": "3s", "leaderElection.retryPeriod": "1s",
	"spot.moveCooldown": "1s", "spot.maxMoves": "50%",
}

// longLease runs out long after a step has given up: who takes over was handed the Lease.
var longLease = fleet.Settings{
	"leaderElection.leaseDuration": "1800s", "leaderElection.renewDeadline": "1200s", "leaderElection.retryPeriod": "5s",
	"spot.moveCooldown": "1s", "spot.maxMoves": "50%",
}

// pair is two replicas of one hub, and who of them acts.
type pair struct {
	t              *testing.T
	f              *fleet.Fleet
	owner, standby *fleet.Process
}

func startOwnershipFleet(t *testing.T) *fleet.Fleet {
	t.Helper()
	f, err := fleet.Start(t.Context(), fleet.Options{Members: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := f.Register(step(t), f.Members...); err != nil {
		t.Fatal(err)
	}
	return f
}

// step is the context of one step.
func step(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ownershipTime)
	t.Cleanup(cancel)
	return ctx
}

// startPair starts one replica, which comes to own the members, and then another.
func startPair(t *testing.T, f *fleet.Fleet, settings fleet.Settings) *pair {
	t.Helper()
	p := &pair{t: t, f: f}
	p.owner = p.start(strings.ReplaceAll(t.Name(), "/", "-")+"-1", settings)
	p.await(p.owner, true)
	p.standby = p.start(strings.ReplaceAll(t.Name(), "/", "-")+"-2", settings)
	p.await(p.standby, false)
	return p
}

func (p *pair) start(name string, settings fleet.Settings) *fleet.Process {
	p.t.Helper()
	replica, err := p.f.NewReplica(name, settings)
	if err != nil {
		p.t.Fatal(err)
	}
	process, err := replica.StartProcess(step(p.t))
	if err != nil {
		p.t.Fatal(err)
	}
	p.f.Balancer.Add(replica.Webhook)
	p.t.Cleanup(func() {
		p.f.Balancer.Remove(replica.Webhook)
		checkMemory(p.t, process)
		_ = process.Kill()
		if p.t.Failed() {
			log, _ := os.ReadFile(replica.LogFile)
			p.t.Logf("log of %s:\n%s", name, log)
		}
	})
	return process
}

// mostMemory is the most that a hub may have resident, in bytes. It has 60 to 70 MB here, and `make bench` asks for less after bursts.
const mostMemory = 100e6

// checkMemory fails the test when a replica that still runs takes more memory than a hub may.
func checkMemory(t *testing.T, hub *fleet.Process) {
	t.Helper()
	if runtime.GOOS != "linux" || hub.Ended() {
		return
	}
	if bytes, err := hub.RSS(); err != nil || bytes > mostMemory {
		t.Errorf("hub %s has %d bytes resident, want at most %.0f: %v", hub.Name, bytes, mostMemory, err)
	}
}

// acts reads what a replica says of itself.
func acts(ctx context.Context, hub *fleet.Process) (bool, error) {
	samples, err := hub.Samples(ctx)
	if err != nil || len(samples["plimsoll_owner"]) != 1 {
		return false, errors.Join(err, fmt.Errorf("plimsoll_owner has %d samples", len(samples["plimsoll_owner"])))
	}
	return samples["plimsoll_owner"][0].Value == 1, nil
}

// await waits until a replica acts or not, and its members are known to it.
func (p *pair) await(hub *fleet.Process, wanted bool) {
	p.t.Helper()
	err := fleet.Await(step(p.t), fmt.Sprintf("hub %s to act: %t", hub.Name, wanted), func(ctx context.Context) (bool, error) {
		is, err := acts(ctx, hub)
		return is == wanted, err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.api(hub).AwaitMembers(step(p.t), p.f.Members...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) api(hub *fleet.Process) *fleet.API {
	p.t.Helper()
	api, err := hub.Connect()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(api.Close)
	return api
}

// workload makes one and waits until the hub has nothing left to do about it.
func (p *pair) workload(replicas, percent int) *fleet.Workload {
	p.t.Helper()
	m := p.f.Members[0]
	namespace, err := m.NewNamespace(step(p.t), "ownership", fleet.Enabled())
	if err != nil {
		p.t.Fatal(err)
	}
	w, err := m.Create(step(p.t), fleet.Deployment(namespace, "web", replicas, fleet.Policy(percent, 1)))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = m.DeleteNamespace(context.Background(), namespace) })
	if err := p.api(p.standby).Settle(step(p.t), w, replicas); err != nil {
		p.t.Fatal(err)
	}
	return w
}

// repolicy changes a policy and waits until the replicas are where it wants them.
func (p *pair) repolicy(w *fleet.Workload, replicas, percent int) {
	p.t.Helper()
	if err := w.Annotate(step(p.t), fleet.Policy(percent, 1)); err != nil {
		p.t.Fatal(err)
	}
	spot, onDemand := fleet.Want(replicas, percent, 1)
	if err := w.AwaitMix(step(p.t), spot, onDemand); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) lease() *coordinationv1.Lease {
	p.t.Helper()
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: fleet.Namespace, Name: "plimsoll-hub"}
	if err := p.f.Hub.Client().Get(step(p.t), key, &lease); err != nil {
		p.t.Fatal(err)
	}
	return &lease
}

// outcome counts a replica's admissions with an outcome.
func (p *pair) outcome(hub *fleet.Process, outcome string) (n float64) {
	p.t.Helper()
	samples, err := hub.Samples(step(p.t))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, sample := range samples["plimsoll_admissions_total"] {
		if sample.Has("outcome", outcome) {
			n += sample.Value
		}
	}
	return n
}

func TestOwnership(t *testing.T) {
	fleets.beside(t)
	f := startOwnershipFleet(t)

	t.Run("the Lease names the owner's address, and only the owner acts", func(t *testing.T) {
		p := startPair(t, f, shortLease)
		holder := *p.lease().Spec.HolderIdentity
		if !strings.HasSuffix(holder, "/"+p.owner.Peer) {
			t.Errorf("the Lease's holder is %q, and the owner's address %s", holder, p.owner.Peer)
		}
		w := p.workload(10, 50)
		p.repolicy(w, 10, 80)
		samples, err := p.standby.Samples(step(t))
		if err != nil {
			t.Fatal(err)
		}
		if n := fleet.Sum(samples["plimsoll_reconcile_total"]); n != 0 {
			t.Errorf("the standby ended %v reconciles", n)
		}
	})

	t.Run("a standby forwards admissions, questions and orders to the owner", func(t *testing.T) {
		p := startPair(t, f, shortLease)
		f.Balancer.Cut(p.owner.Webhook) // members reach only the standby
		w := p.workload(10, 70)         // asks the standby, and orders a reconcile there
		if p.outcome(p.standby, "forwarded") < 10 || p.outcome(p.owner, "spot") < 7 {
			t.Errorf("the standby forwarded %v admissions, and the owner sent %v pods to spot",
				p.outcome(p.standby, "forwarded"), p.outcome(p.owner, "spot"))
		}
		mix, err := w.AwaitReady(step(t), 10)
		if err != nil || mix.Spot != 7 || mix.OnDemand != 3 {
			t.Errorf("got %s, error %v", mix, err)
		}
		cluster, err := p.api(p.standby).Cluster(step(t), "a")
		if err != nil || cluster.GetOwner() != p.owner.Peer {
			t.Errorf("the standby says that %q owns the member, error %v", cluster.GetOwner(), err)
		}
	})

	t.Run("replicas talk to replicas only", func(t *testing.T) {
		p := startPair(t, f, shortLease)
		refusesStrangers(t, p.owner.Peer)
	})

	t.Run("a killed owner is succeeded without a list", func(t *testing.T) {
		p := startPair(t, f, shortLease)
		w := p.workload(10, 70)
		mark, err := f.Members[0].Cluster.Audit().Mark()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.owner.Kill(); err != nil {
			t.Fatal(err)
		}
		p.repolicy(w, 10, 30)
		lists, err := f.Members[0].Cluster.Audit().Since(mark, fleet.ByHub, kube.Lists)
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range lists {
			t.Errorf("listed: %s", list.URI)
		}
	})

	t.Run("an owner that is asked to stop hands over long before its Lease runs out", func(t *testing.T) {
		// The Lease of a replica that was killed is waited out, for as long as the own one lasts; one that stops gives it up.
		before := &pair{t: t, f: f}
		heir := before.start("heir-of-the-killed", shortLease)
		before.await(heir, true)
		if err := heir.Stop(step(t)); err != nil {
			t.Fatal(err)
		}
		p := startPair(t, f, longLease)
		w := p.workload(10, 70)
		if err := p.owner.Stop(step(t)); err != nil {
			t.Fatal(err)
		}
		p.await(p.standby, true)
		p.repolicy(w, 10, 30)
		if err := p.standby.Stop(step(t)); err != nil {
			t.Fatal(err)
		}
		if holder := p.lease().Spec.HolderIdentity; holder != nil && *holder != "" {
			t.Errorf("the Lease is still held by %q", *holder)
		}
	})

	t.Run("an owner that loses touch with the hub cluster writes nothing any more", func(t *testing.T) {
		p := startPair(t, f, shortLease)
		w := p.workload(10, 70)
		if err := f.Hub.HangAPIServer(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := f.Hub.ResumeAPIServer(); err != nil {
				t.Error(err)
			}
		}()
		err := fleet.Await(step(t), "the owner to stop acting", func(ctx context.Context) (bool, error) {
			is, err := acts(ctx, p.owner)
			return !is, err
		})
		if err != nil {
			t.Fatal(err)
		}
		mark, err := w.Member.Cluster.Audit().Mark()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Annotate(step(t), fleet.Policy(30, 1)); err != nil {
			t.Fatal(err)
		}
		p.awaitHeld(w)
		writes, err := w.Member.Cluster.Audit().Since(mark, fleet.ByHub, kube.Writes)
		if err != nil {
			t.Fatal(err)
		}
		for _, write := range writes {
			t.Errorf("written without a Lease: %s %s", write.Verb, write.URI)
		}
		if err := f.Hub.ResumeAPIServer(); err != nil {
			t.Fatal(err)
		}
		spot, onDemand := fleet.Want(10, 30, 1)
		if err := w.AwaitMix(step(t), spot, onDemand); err != nil {
			t.Error(err)
		}
	})
}

// awaitHeld waits until the last owner, which still answers, says that it holds the workload.
func (p *pair) awaitHeld(w *fleet.Workload) {
	p.t.Helper()
	api := p.api(p.owner)
	err := fleet.Await(step(p.t), w.String()+" to be held", func(ctx context.Context) (bool, error) {
		got, err := api.Objects.GetObjectState(ctx, &plimsollv1.GetObjectStateRequest{
			Cluster: w.Member.Name, Controller: "deployment-spot", Namespace: w.Namespace, Name: w.Name,
		})
		if err != nil {
			return false, err
		}
		if state := got.GetObject().GetState(); state != plimsollv1.ReconcileState_RECONCILE_STATE_HELD {
			return false, fmt.Errorf("it is %s", state)
		}
		return true, nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// refusesStrangers calls a peer server without a certificate.
func refusesStrangers(t *testing.T, address string) {
	t.Helper()
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, // we do not care who it is, but who it takes us for
	}}}
	defer stranger.CloseIdleConnections()
	request, err := http.NewRequestWithContext(step(t), http.MethodPost, "https://"+address+"/peer/v1/members/a/pods", bytes.NewReader([]byte(`{}`)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := stranger.Do(request)
	if err == nil {
		_ = response.Body.Close()
		t.Errorf("a client without a certificate got %s", response.Status)
	} else if !strings.Contains(err.Error(), "certificate") {
		t.Errorf("refused for another reason: %v", err)
	}
}
