package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// patience is how long one step may take on a machine that is busy with other things. It is never what is tested.
const patience = 3 * time.Minute

// chapterSite is a site within a chapter.
type chapterSite struct {
	*testing.T
	*Site
}

func TestAFleetInContainersThroughFaultsUnderLoad(t *testing.T) {
	needEngine(t)
	starting, started := context.WithTimeout(t.Context(), 2*patience)
	defer started()
	s, err := Start(starting, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.Logs())
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, chapter := range []struct {
		name string
		run  func(chapterSite, context.Context)
	}{
		{"the owner is killed, and the other replica goes on", chapterSite.killOwner},
		{"an owner that is cut off from everything stops acting, and the other replica goes on", chapterSite.cutOwner},
		{"a member that is cut off costs the others nothing, and is corrected when it is back", chapterSite.cutMember},
		{"a member that is paused costs the others nothing", chapterSite.pauseMember},
		{"a member whose control plane is restarted is corrected", chapterSite.restartMember},
		{"a hub that is cut off from its own API server stops acting, and goes on when it is back", chapterSite.cutHub},
		{"the hub is rolled to another image with another configuration, and back", chapterSite.roll},
	} {
		if !t.Run(chapter.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			chapter.run(chapterSite{T: t, Site: s}, ctx)
		}) {
			return
		}
	}
}

// needEngine skips a test where no engine answers, unless it may not be skipped.
func needEngine(t *testing.T) {
	t.Helper()
	if err := EngineReady(t.Context()); err != nil {
		if os.Getenv("REQUIRE_DOCKER") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

func (s chapterSite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// settle ends a chapter: all members converge, and nothing in the history of the whole site is what must not be.
func (s chapterSite) settle(ctx context.Context) *Outcome {
	s.Helper()
	outcome, converged, err := s.Settle(ctx)
	s.must(err)
	s.must(outcome.Err())
	s.Logf("converged %s after the load was held still; so far %s", converged.Round(10*time.Millisecond), outcome)
	return outcome
}

// owner is who acts, when there is no change under way.
func (s chapterSite) owner(ctx context.Context, not *Replica) *Replica {
	s.Helper()
	owner, err := s.Owner(ctx, not)
	s.must(err)
	return owner
}

// unharmed waits until members converge while another one is in trouble.
func (s chapterSite) unharmed(ctx context.Context, members ...*Cluster) {
	s.Helper()
	s.must(s.converge(ctx, members...))
	s.goOn(members...)
}

func (s chapterSite) killOwner(ctx context.Context) {
	was, killed := s.owner(ctx, nil), time.Now()
	s.must(s.Kill(ctx, was))
	is := s.owner(ctx, was)
	s.Logf("%s took over from %s after %s", is.Name, was.Name, time.Since(killed).Round(10*time.Millisecond))
	s.settle(ctx)
	s.must(s.startAgain(ctx, was))
}

func (s chapterSite) cutOwner(ctx context.Context) {
	was := s.owner(ctx, nil)
	s.must(s.cut(ctx, was))
	s.awaitIdle(ctx, was)
	s.owner(ctx, was)
	s.unharmed(ctx, s.Members...)
	s.must(s.reconnect(ctx, was))
	for _, m := range s.Members {
		s.must(was.awaitState(ctx, m.Name, "Ready"))
	}
	s.settle(ctx)
}

// awaitIdle waits until a replica says that it does not act.
func (s chapterSite) awaitIdle(ctx context.Context, r *Replica) {
	s.Helper()
	s.must(fleet.Await(ctx, r.Name+" to stop acting", func(ctx context.Context) (bool, error) {
		acts, err := r.acts(ctx)
		return err == nil && !acts, err
	}))
}

func (s chapterSite) cutMember(ctx context.Context) {
	cut, acting := s.Members[1], s.owner(ctx, nil)
	s.must(s.yard.disconnect(ctx, "net-"+cut.Name, cut.Name))
	s.must(acting.awaitState(ctx, cut.Name, "Unreachable"))
	s.unharmed(ctx, s.Members[0], s.Members[2])
	s.must(s.yard.connect(ctx, "net-"+cut.Name, cut.Name, cut.Name))
	s.settle(ctx)
}

func (s chapterSite) pauseMember(ctx context.Context) {
	paused, acting := s.Members[0], s.owner(ctx, nil)
	s.must(s.yard.pause(ctx, paused.Name))
	s.must(acting.awaitState(ctx, paused.Name, "Unreachable"))
	s.unharmed(ctx, s.Members[1], s.Members[2])
	s.must(s.yard.unpause(ctx, paused.Name))
	s.settle(ctx)
}

func (s chapterSite) restartMember(ctx context.Context) {
	s.must(s.Members[2].restart(ctx))
	s.settle(ctx)
}

func (s chapterSite) cutHub(ctx context.Context) {
	was := s.owner(ctx, nil)
	s.must(s.yard.disconnect(ctx, "net-hub", "hub"))
	s.awaitIdle(ctx, was)
	s.must(s.yard.connect(ctx, "net-hub", "hub", "hub"))
	s.settle(ctx)
}

// roll replaces both replicas, and shows by a workload that has no policy of its own that the new configuration is what they run
// with.
func (s chapterSite) roll(ctx context.Context) {
	s.must(s.Site.roll(ctx, Upgrade))
	for _, m := range s.Members {
		// All replicas but one on spot: the default of the configuration that came with the image.
		s.must(m.awaitMix(ctx, plain, mix{spot: 5, onDemand: 1}))
	}
	s.settle(ctx)
	s.must(s.Site.roll(ctx, Install))
	v := s.settle(ctx)
	if v.Changes == 0 || v.Orders == 0 || v.Writes == 0 || v.Budgeted == 0 || v.Named == 0 || v.Tenures < 2 {
		s.Errorf("too little was tried to say anything: %s", v)
	}
}
