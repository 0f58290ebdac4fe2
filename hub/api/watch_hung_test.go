package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// stalling is a network whose connections can stop without being closed, as those to a process that is stopped or behind a firewall
// that drops everything do. What is sent meanwhile arrives when they continue.
type stalling struct {
	mu      sync.Mutex
	stopped chan struct{} // nil: they do not; closed when they continue
}

func (s *stalling) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	return &stallingConn{Conn: conn, of: s, closed: make(chan struct{})}, err
}

func (s *stalling) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = make(chan struct{})
}

func (s *stalling) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.stopped)
	s.stopped = nil
}

type stallingConn struct {
	net.Conn
	of     *stalling
	once   sync.Once
	closed chan struct{}
}

// wait returns when the connection is closed or does not stop.
func (c *stallingConn) wait() {
	c.of.mu.Lock()
	stopped := c.of.stopped
	c.of.mu.Unlock()
	if stopped == nil {
		return
	}
	select {
	case <-stopped:
	case <-c.closed:
	}
}

func (c *stallingConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	c.wait()
	return n, err
}

func (c *stallingConn) Write(text []byte) (int, error) {
	c.wait()
	return c.Conn.Write(text)
}

func (c *stallingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A replica that hangs answers neither yes nor no. Who watches members of several replicas gets at once what changes in those of the
// others, however long it takes.
func TestAReplicaThatHangsHoldsUpNoMembersOfOthersInAWatch(t *testing.T) {
	first, second := watched(t)
	network := &stalling{}
	second.overTLS(t, grpc.WithContextDialer(network.dial))
	events, _, _ := serve(t, first, func(o *Options) { o.OwnerTimeout = time.Hour }).watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{})
	expectAll(t, events, "PUT dev/cart", "PUT test/cart", "SYNCED")
	network.stop()
	defer network.resume()
	for n := range 10 {
		first.attempts("dev", "cart", n+1)
		expect(t, events, "PUT dev/cart")
	}
	first.member("new") // also one that was not there before
	first.fleet.give("new", first.address)
	first.attempts("new", "cart", 1)
	expect(t, events, "PUT new/cart")
}

// Who watches learns that what they have of the replica's members is old, and gets the rest when it continues.
func TestAWatchSaysThatTheOwnerOfAMemberHangsAndGoesOnWhenItAnswers(t *testing.T) {
	first, second := watched(t)
	network := &stalling{}
	second.overTLS(t, grpc.WithContextDialer(network.dial))
	s := serve(t, first, nil)
	events, _, _ := s.watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{})
	expectAll(t, events, "PUT dev/cart", "PUT test/cart", "SYNCED")
	network.stop()
	expect(t, events, "BOOKMARK without test")
	first.attempts("dev", "cart", 1)
	expect(t, events, "PUT dev/cart")
	late, _, _ := s.watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{Cluster: "test"}) // from what was known before
	expect(t, late, "PUT test/cart", "SYNCED without test")
	second.attempts("test", "cart", 1)
	network.resume()
	expect(t, events, "PUT test/cart", "BOOKMARK")
	expect(t, late, "PUT test/cart", "BOOKMARK")
}

// expectAll waits for events in any order, the last of them last.
func expectAll(t *testing.T, events <-chan string, want ...string) {
	t.Helper()
	missing := map[string]bool{}
	for _, w := range want {
		missing[w] = true
	}
	for last := ""; len(missing) > 0 || last != want[len(want)-1]; {
		select {
		case last = <-events:
			delete(missing, last)
		case <-time.After(time.Minute):
			t.Fatalf("nothing came, want %v", missing)
		}
	}
}

// A replica that hangs costs its timeout once, however many members it owns: a watch is complete after that, and names them.
func TestAReplicaThatHangsCostsAWatchOneTimeoutForAllOfItsMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		asked, hung := f.replica(t, "a"), f.replica(t, "hung")
		conn := &countingConn{ClientConnInterface: hungConn{}}
		hung.peer = conn
		const members = 10 * window
		for i := range members {
			name := fmt.Sprintf("m%03d", i)
			asked.member(name)
			f.give(name, "hung")
		}
		asked.member("mine")
		f.give("mine", "a")
		asked.attempts("mine", "cart", 1)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		c := asked.ledgerService(t).core
		c.stopping, c.recheck, c.timeout = ctx, time.Hour, 3*time.Second
		told := &untilSynced{objectsOf: objectsOf{streamOf{ctx: context.WithValue(ctx, identityKey{}, auth.Identity{User: "alice"})}}}
		if err := newServices(c).objects.WatchObjects(&plimsollv1.WatchObjectsRequest{}, told); !errors.Is(err, errSynced) {
			t.Fatal(err)
		}
		if len(told.missing) != members || told.puts != 1 || !strings.Contains(told.missing[0].GetReason(), "its owner does not answer") {
			t.Errorf("%d objects, without %d members, want 1 without %d", told.puts, len(told.missing), members)
		}
		if calls := conn.calls.Load(); calls == 0 || calls > window {
			t.Errorf("the replica that hangs was called %d times before the watch was complete, want those of the first window", calls)
		}
	})
}

// untilSynced is the stream of a watch that ends when everything that there is has been sent, and keeps what was missing.
type untilSynced struct {
	objectsOf
	puts    int
	missing []*plimsollv1.UnreachableMember
}

func (u *untilSynced) SendMsg(message any) error {
	sent, ok := message.(interface {
		GetType() plimsollv1.WatchEventType
		GetUnreachable() []*plimsollv1.UnreachableMember
	})
	if !ok { // which many share: a PUT
		u.puts++
		return nil
	}
	if sent.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED {
		u.missing = sent.GetUnreachable()
		return errSynced
	}
	return nil
}

// A member that moves away from a replica that hangs is read of its new owner at once, and what the old one says of it late is not sent.
func TestAMemberThatLeavesAReplicaThatHangsIsShownAsItsNewOwnerSaysIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFleet().replica(t, "a")
		r.member("prod")
		r.fleet.give("prod", "hung")
		late := make(chan struct{})
		read := func(_ context.Context, member string, _ *failures) ([]*plimsollv1.Cluster, string, bool) {
			owner := r.fleet.owner(member)
			if owner == "hung" {
				<-late
			}
			return []*plimsollv1.Cluster{{Name: member, Owner: owner}}, "", false
		}
		f := newFeed(&core{members: r, ownership: r, log: testLog(t)}, func(c *plimsollv1.Cluster) lists.Position { return lists.Position{c.GetName()} }, read)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		defer f.enter(ctx)()
		synctest.Wait() // it is read
		r.fleet.give("prod", "new")
		shown := func(when string) {
			t.Helper()
			synctest.Wait()
			if found, now, _ := f.after(f.begin(), 0, 10); len(found) != 1 || found[0].item.GetOwner() != "new" || !now.whole {
				t.Errorf("%s: %v, complete: %t", when, found, now.whole)
			}
		}
		time.Sleep(refreshCeiling)
		shown("while the old owner hangs")
		close(late)
		shown("when the old owner has answered")
	})
}
