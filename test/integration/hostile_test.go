package integration

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
	"unicode"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// noticed are the hostilities that keep the hub from working in the member, which then is not Ready. The others are borne,
// or are seen only later: a silent watch looks like one on which nothing happens.
var noticed = []fleet.Hostility{
	fleet.LargeLists, fleet.CompressedLists, fleet.EndlessPages, fleet.EndlessEvents, fleet.UnfinishedEvents, fleet.OthersIdentity,
	fleet.EmptyBytes, fleet.RefusedWatches, fleet.SlowHandshakes, fleet.NoisyTexts, fleet.RepeatedPages, fleet.UntypedAnswers,
	fleet.OtherKinds, fleet.TextAnswers, fleet.LargeHeaders, fleet.LongVersions,
}

// onRequest are tried with HOSTILE_ALL=1 only: what they are about is asked for at long intervals, or again and again by a
// member that never settles, so each takes minutes. A flood of unread calls takes processors from the other tests that run beside this one.
var onRequest = []fleet.Hostility{
	fleet.UnreadCalls,
	fleet.NoisyTexts, fleet.TextAnswers, fleet.OthersIdentity, fleet.VersionsBack, fleet.EndlessDiscovery, fleet.Redirects, fleet.RefusalStorms, fleet.SlowHandshakes,
}

// TestAHostileMemberHarmsNobody has a member attack the hub in several ways, chosen by a seed that HOSTILE_SEED sets.
// HOSTILE_ALL=1 tries all of them.
func TestAHostileMemberHarmsNobody(t *testing.T) {
	fleets.beside(t)
	seed := hostileSeed(t)
	s := newHostileSite(t, seed)
	t.Run(string(fleet.NoisyTexts), func(t *testing.T) { s.endure(t, fleet.NoisyTexts) }) // first, for what the log says of it
	for _, hostility := range chosenHostilities(seed) {
		t.Run(string(hostility), func(t *testing.T) { s.endure(t, hostility) })
	}
	t.Run("its text", s.checkLog)
}

// longestLine is what a line of the hub's log may have at most, in bytes: more than any that is about one error, and less than
// what a hostile member would have it write.
const longestLine = 32 << 10

// checkLog looks for what no line of the log may have, whatever the hostile member said.
func (s *hostileSite) checkLog(t *testing.T) {
	log, err := os.ReadFile(s.hub.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	ofMember := 0
	for line := range bytes.Lines(log) {
		if len(line) > longestLine || bytes.ContainsFunc(bytes.TrimSuffix(line, []byte("\n")), unicode.IsControl) {
			t.Errorf("a line of %d bytes: %.300q", len(line), line)
		}
		if bytes.Contains(line, []byte(`"member":"`+s.hostile.Name+`"`)) {
			ofMember++
		}
	}
	if most := plain.LineBurst + plain.LinesPerSecond*time.Since(s.began).Seconds(); float64(ofMember) > most {
		t.Errorf("%d lines about the hostile member, and at most %.0f are allowed until now", ofMember, most)
	}
}

func hostileSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("HOSTILE_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("HOSTILE_SEED: %v", err)
		}
	}
	t.Logf("HOSTILE_SEED=%d", seed)
	return seed
}

// chosenHostilities are two that are noticed and two others.
func chosenHostilities(seed uint64) []fleet.Hostility {
	if os.Getenv("HOSTILE_ALL") == "1" {
		others := slices.DeleteFunc(slices.Clone(fleet.Hostilities), func(h fleet.Hostility) bool { return h == fleet.NoisyTexts })
		return append(others, fleet.AllHostilities)
	}
	var seen, borne []fleet.Hostility
	for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(len(fleet.Hostilities)) {
		switch hostility := fleet.Hostilities[i]; {
		case slices.Contains(onRequest, hostility):
		case isNoticed(hostility):
			seen = append(seen, hostility)
		default:
			borne = append(borne, hostility)
		}
	}
	return []fleet.Hostility{seen[0], borne[0], seen[1], borne[1]}
}

func isNoticed(hostility fleet.Hostility) bool { return slices.Contains(noticed, hostility) }

// hostileSite is a hub in a process of its own with a workload in a healthy member, and a hostile member beside three
// healthy ones.
type hostileSite struct {
	hub     *fleet.Process
	began   time.Time // before the hub
	api     *fleet.API
	healthy []*fleet.Member
	hostile *fleet.Hostile
	busy    *fleet.Workload
	review  []byte    // an admission call of the first healthy member
	memory  int64     // the most that the hub had resident before anybody was hostile
	calm    time.Time // when nobody had been hostile yet
}

const (
	hostileReplicas = 10
	hostilePercent  = 50
	hostileFloor    = 3
)

func newHostileSite(t *testing.T, seed uint64) *hostileSite {
	t.Helper()
	g, ctx := NewWithT(t), step(t)
	f := startFleet(t, "alpha")
	for _, name := range []string{"beta", "gamma"} {
		m, err := f.StartMember(ctx, kube.Options{Name: name, Minimal: true})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.Register(ctx, m)).To(Succeed())
	}
	hostile, err := f.StartHostile(ctx, fleet.HostileOptions{Name: "mallory", Seed: seed, Victim: f.Members[0]})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(hostile.Stop()).To(Succeed()) })
	g.Expect(hostile.InstallWebApps(ctx)).To(Succeed())
	g.Expect(f.Register(ctx, hostile.Member)).To(Succeed())
	replica, err := f.NewReplica("hostile", fleet.Settings{
		"spot.moveCooldown": "1s", "clusters.warmTimeout": "10s", "clusters.probeInterval": "1s", "clusters.maxCacheMiB": hostileCache >> 20, "clusters.maxAnswerMiB": hostileAnswer >> 20,
		"clusters.maxCachedObjects": 1000, // endless events fill a cache in seconds, although they are read at a pace
	})
	g.Expect(err).NotTo(HaveOccurred())
	began := time.Now()
	hub, err := replica.StartProcess(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	f.Balancer.Add(replica.Webhook)
	api, err := replica.Connect()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		api.Close()
		_ = hub.Kill()
		if t.Failed() {
			log, _ := os.ReadFile(replica.LogFile)
			t.Logf("the hub's log ends with:\n%s", log[max(0, len(log)-20_000):])
		}
	})
	s := &hostileSite{hub: hub, began: began, api: api, healthy: f.Members, hostile: hostile}
	g.Expect(api.AwaitMembers(ctx, append(f.Members, hostile.Member)...)).To(Succeed())
	namespace, err := f.Members[0].NewNamespace(ctx, "busy", fleet.Enabled())
	g.Expect(err).NotTo(HaveOccurred())
	recorder, calls := recordCalls(t, f.Members[0], namespace)
	s.busy, err = f.Members[0].Create(ctx, fleet.Deployment(namespace, "web", hostileReplicas, fleet.Policy(hostilePercent, hostileFloor)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(api.Settle(ctx, s.busy, hostileReplicas)).To(Succeed())
	g.Expect(recorder.Remove(ctx)).To(Succeed())
	s.review = dryRun(t, <-calls)
	s.memory, err = hub.PeakRSS()
	g.Expect(err).NotTo(HaveOccurred())
	s.calm = time.Now()
	return s
}

// endure has the member attack while the workload is scaled and moved, and then behave well again.
func (s *hostileSite) endure(t *testing.T, hostility fleet.Hostility) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*ownershipTime)
	defer cancel()
	toll, err := s.busy.Endure(ctx, hostileFloor, func(ctx context.Context) error {
		if err := s.hostile.Behave(ctx, hostility); err != nil {
			return err
		}
		if isNoticed(hostility) {
			if err := s.awaitTrouble(ctx); err != nil {
				return err
			}
		}
		return s.keepAsking(ctx, s.exercise)
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(toll.Breaks).To(BeEmpty())
	g.Expect(s.hub.Ended()).To(BeFalse(), "the hub is not restarted")
	g.Expect(s.healthyStates(ctx)).To(HaveEach(plimsollv1.ClusterState_CLUSTER_STATE_READY))
	s.checkBounds(t)

	g.Expect(s.hostile.Behave(ctx, fleet.WellBehaved)).To(Succeed())
	g.Expect(s.recovers(t.Context())).To(Succeed())
}

// recoveryTime is how long a member that behaves well again may be Degraded. Each attempt at a kind that was too large or unreadable
// costs what is allowed, so the pauses between them grow, over all hostilities, up to five minutes and a fifth.
const recoveryTime = 8 * time.Minute

// recovers waits until the hostile member is Ready again.
func (s *hostileSite) recovers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recoveryTime)
	defer cancel()
	for {
		err := s.api.AwaitMembers(ctx, s.hostile.Member) // gives up earlier
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// exercise scales the workload up and changes its policy, and takes both back.
func (s *hostileSite) exercise(ctx context.Context) error {
	for _, wanted := range []struct{ replicas, percent int }{{hostileReplicas + 6, hostilePercent}, {hostileReplicas, 20}, {hostileReplicas, hostilePercent}} {
		if err := s.busy.Scale(ctx, wanted.replicas); err != nil {
			return err
		}
		if err := s.busy.Annotate(ctx, fleet.Policy(wanted.percent, hostileFloor)); err != nil {
			return err
		}
		spot, onDemand := fleet.Want(wanted.replicas, wanted.percent, hostileFloor)
		if err := s.busy.AwaitMix(ctx, spot, onDemand); err != nil {
			return err
		}
	}
	return nil
}

// awaitTrouble waits until the hub says that the hostile member is not Ready, and why.
func (s *hostileSite) awaitTrouble(ctx context.Context) error {
	return fleet.Await(ctx, "the hostile member to be in trouble", func(ctx context.Context) (bool, error) {
		shown, err := s.api.Cluster(ctx, s.hostile.Name)
		if err != nil {
			return false, err
		}
		switch shown.GetState() {
		case plimsollv1.ClusterState_CLUSTER_STATE_DEGRADED, plimsollv1.ClusterState_CLUSTER_STATE_UNREACHABLE, plimsollv1.ClusterState_CLUSTER_STATE_REFUSED:
			return shown.GetReason() != "", nil
		}
		return false, fmt.Errorf("it is %s: %s", shown.GetState(), shown.GetMessage())
	})
}

func (s *hostileSite) healthyStates(ctx context.Context) (states []plimsollv1.ClusterState, err error) {
	for _, m := range s.healthy {
		shown, err := s.api.Cluster(ctx, m.Name)
		if err != nil {
			return nil, err
		}
		states = append(states, shown.GetState())
	}
	return states, nil
}
