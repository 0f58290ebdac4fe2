package integration

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/simulated"
)

// crowdSize is how many simulated members join; the bench takes 300.
const crowdSize = 40

// crowdSite is a hub with simulated members.
type crowdSite struct {
	t       *testing.T
	g       *WithT
	fleet   *fleet.Fleet
	hub     *insideHub
	members []*simulated.Member
}

func TestManySimulatedMembers(t *testing.T) {
	fleets.beside(t)
	simulation, err := simulated.Start("member", crowdSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(simulation.Close)
	s := &crowdSite{t: t, g: NewWithT(t), fleet: startFleetWith(t, fleet.Options{}), members: simulation.Members}
	s.hub = startHub(t, s.fleet, "crowd")
	for _, m := range s.members {
		s.register(m)
	}
	s.awaitHealthy(s.members...)

	s.hub.stop(t)
	s.hub = startHub(t, s.fleet, "crowd-again")
	s.awaitHealthy(s.members...)
	s.slowSpec()
	s.watchesSpec()
}

func (s *crowdSite) register(m *simulated.Member) {
	s.g.Expect(s.fleet.Hub.Client().Create(s.t.Context(), fleet.Registration(m.Name, m.Kubeconfig()))).To(Succeed())
}

// awaitHealthy waits until members are Ready; the hub may have called none of them anything worse on the way.
func (s *crowdSite) awaitHealthy(members ...*simulated.Member) {
	s.t.Helper()
	s.g.Eventually(func(g Gomega) {
		changes := simulated.Changes(s.hub.log.content())
		for _, m := range members {
			of := changes[m.Name]
			g.Expect(of).NotTo(BeEmpty(), m.Name)
			g.Expect(of[len(of)-1].State).To(Equal("Ready"), "%s: %+v", m.Name, of)
		}
	}, patience, "100ms").Should(Succeed())
	for member, of := range simulated.Changes(s.hub.log.content()) {
		for _, change := range of {
			s.g.Expect(change.Healthy()).To(BeTrue(), "%s works, and was called %s, %s: %s", member, change.State, change.Reason, change.Message)
		}
	}
}

// slowSpec: a member that takes two seconds for each answer joins, and one that becomes as slow stays.
func (s *crowdSite) slowSpec() {
	simulation, err := simulated.Start("slow", 1)
	s.g.Expect(err).NotTo(HaveOccurred())
	s.t.Cleanup(simulation.Close)
	slow, slower := simulation.Members[0], s.members[0]
	slow.Delay(2 * time.Second)
	slower.Delay(2500 * time.Millisecond)
	s.register(slow)
	s.awaitHealthy(slow)
	probes := slower.Requests()["probe"]
	s.g.Eventually(func() int { return slower.Requests()["probe"] - probes }, patience).Should(BeNumerically(">=", 2))
	slower.Delay(0)
	s.awaitHealthy(append(s.members, slow)...)
}

// watchesSpec: whatever ends watches again and again, all are open once it is over.
func (s *crowdSite) watchesSpec() {
	broken := s.members[1:11]
	before := map[*simulated.Member][]string{}
	for i, m := range broken {
		before[m] = m.Watched()
		s.g.Expect(before[m]).NotTo(BeEmpty())
		m.Break(simulated.Faults()[i%len(simulated.Faults())])
	}
	for _, m := range broken {
		tried := m.Requests()["watch"]
		s.g.Eventually(func() int { return m.Requests()["watch"] - tried }, patience).Should(BeNumerically(">=", 3*len(before[m])), m.Name)
	}
	for _, m := range broken {
		m.Break(simulated.None)
	}
	for _, m := range broken {
		s.g.Eventually(m.Watched, patience).Should(Equal(before[m]), m.Name)
	}
	s.awaitHealthy(s.members...)
}

// content is all that was said so far.
func (l *hubLog) content() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.text.Bytes())
}
