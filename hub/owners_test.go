package hub

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

const ownAddress = "10.0.0.1:1"

// shared is the ownership of members that have different owners, by member.
type shared struct {
	owners map[string]string
	tell   func()
}

func (s *shared) Owner(member string) (string, time.Time) {
	return s.owners[member], time.Now().Add(time.Hour)
}

func (s *shared) Mine(member string) (time.Time, bool) {
	return time.Now().Add(time.Hour), s.owners[member] == ownAddress
}

func (s *shared) MineAny() bool {
	for _, owner := range s.owners {
		if owner == ownAddress {
			return true
		}
	}
	return false
}

func (s *shared) Subscribe(f func()) { s.tell = f }

func (s *shared) MayWrite(member string) error {
	if _, mine := s.Mine(member); !mine {
		return errors.New("replica at " + s.owners[member] + " owns it")
	}
	return nil
}

func (s *shared) BeginWrite(member string) (time.Time, func(), error) {
	return time.Time{}, func() {}, s.MayWrite(member)
}

// newShared has the members a and b, of which a is ours and b is not.
func newShared(t *testing.T) (*shared, *holds, *reconcile.Runtime) {
	t.Helper()
	rt, err := reconcile.NewRuntime(reconcile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log, owns := slog.New(slog.DiscardHandler), &shared{owners: map[string]string{"a": ownAddress, "b": "10.0.0.2:1"}}
	g := &holds{runtime: rt, ownership: owns, peers: newPeers(nil, log), log: log}
	g.follow()
	return owns, g, rt
}

func TestTwoMembersMayHaveDifferentOwners(t *testing.T) {
	owns, _, rt := newShared(t)
	expect := func(member, reason string) {
		t.Helper()
		if got, held := rt.Held(member); got != reason || held != (reason != "") {
			t.Errorf("member %s is held: %t, because %q", member, held, got)
		}
	}
	expect("a", "")
	expect("b", "replica at 10.0.0.2:1 owns it")
	rt.Release("b", reconcile.HoldBreaker) // it is known to the runtime from now on
	expect("b", "replica at 10.0.0.2:1 owns it")
	owns.owners["a"], owns.owners["b"] = "10.0.0.3:1", ownAddress
	owns.tell()
	expect("a", "replica at 10.0.0.3:1 owns it")
	expect("b", "")

	r := routes{ownership: owns, self: ownAddress}
	if local, _ := r.Route("b"); !local {
		t.Error("our own member is asked about elsewhere")
	}
	if local, owner := r.Route("a"); local || owner != "10.0.0.3:1" {
		t.Errorf("questions about a go to %q, local: %t", owner, local)
	}
}

func TestConnectionsToTheOwnersOfAllMembersAreKept(t *testing.T) {
	owns, g, _ := newShared(t)
	owns.owners["c"] = "10.0.0.3:1"
	event := func(member string, removed bool) clusters.Event {
		return clusters.Event{Status: clusters.Status{Name: member}, Removed: removed}
	}
	for _, member := range []string{"a", "b", "c"} {
		g.member(event(member, false))
	}
	for _, owner := range []string{"10.0.0.2:1", "10.0.0.3:1"} {
		if _, err := g.peers.Dial(owner); err != nil {
			t.Fatal(err)
		}
	}
	owns.tell()
	if len(g.peers.leaving) != 0 {
		t.Errorf("connections to owners are about to be closed: %v", g.peers.leaving)
	}
	g.member(event("b", true))
	if len(g.peers.leaving) != 1 || g.peers.leaving["10.0.0.2:1"] == nil {
		t.Errorf("of the connections %v are about to be closed, though 10.0.0.2:1 alone owns nothing any more", g.peers.leaving)
	}
	g.peers.close()
}

// recorded is an EventRecorder that counts.
type recorded struct{ names []string }

func (r *recorded) Eventf(regarding, _ runtime.Object, _, _, _, _ string, _ ...any) {
	r.names = append(r.names, regarding.(*corev1.Secret).Name)
}

func TestEventsAboutARegistrationAreRecordedByTheOwnerOfItsMember(t *testing.T) {
	owns, _, _ := newShared(t)
	seen := &recorded{}
	events := ownEvents{EventRecorder: seen, routes: routes{ownership: owns, self: ownAddress}}
	for _, member := range []string{"a", "b", "unowned"} {
		events.Eventf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: member}}, nil, corev1.EventTypeNormal, "Joined", "Register", "")
	}
	if len(seen.names) != 2 || seen.names[0] != "a" || seen.names[1] != "unowned" {
		t.Errorf("recorded for %v", seen.names)
	}
}
