package api

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
)

// versioned is a source whose members say when they change, but for those that are elsewhere.
type versioned struct {
	mu        sync.Mutex
	versions  map[string]uint64
	elsewhere map[string]bool
	reads     map[string]int
	items     map[string][]*plimsollv1.Cluster
}

func (v *versioned) read(_ context.Context, member string, _ *failures) ([]*plimsollv1.Cluster, string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reads[member]++
	return v.items[member], "", false
}

func (v *versioned) version(member string) (uint64, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.versions[member], !v.elsewhere[member]
}

func (v *versioned) count(member string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.reads[member]
}

func TestAFeedReadsAMemberWhenItHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &versioned{
			versions: map[string]uint64{"here": 1, "quiet": 1}, elsewhere: map[string]bool{"there": true}, reads: map[string]int{},
			items: map[string][]*plimsollv1.Cluster{"here": {{Name: "here"}}},
		}
		r := newFleet().replica(t, "10.0.0.1:9444")
		r.member("here", "quiet", "there")
		f := newFeed(&core{members: r, ownership: r, log: slog.New(slog.DiscardHandler)},
			func(c *plimsollv1.Cluster) lists.Position { return lists.Position{c.GetName()} }, source.read)
		f.version = source.version
		ctx, cancel := context.WithCancel(t.Context())
		leave := f.enter(ctx)
		synctest.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		if here, there := source.count("here"), source.count("there"); here != 1 || there < 5 {
			t.Errorf("read %d times here, where nothing changed, and %d times there", here, there)
		}
		_, now, _ := f.after(f.begin(), 0, 10)
		source.mu.Lock()
		source.versions["here"], source.items["here"] = 2, []*plimsollv1.Cluster{{Name: "here", Reason: "changed"}}
		source.mu.Unlock()
		time.Sleep(changeFloor)
		synctest.Wait()
		found, _, ok := f.after(f.begin(), now.upTo, 10)
		if !ok || len(found) != 1 || found[0].item.GetReason() != "changed" || source.count("here") != 2 || source.count("quiet") != 1 {
			t.Errorf("%v after a change, %d reads of it, %d of another", found, source.count("here"), source.count("quiet"))
		}
		time.Sleep(2 * refreshCeiling)
		synctest.Wait()
		if quiet := source.count("quiet"); quiet < 2 {
			t.Errorf("a member that says nothing was read %d times in %s", quiet, 2*refreshCeiling)
		}
		leave()
		cancel()
	})
}

// Nobody has to wait until something else changes, or for the next bookmark, to learn that a member has gone.
func TestAFeedTellsAtOnceThatAMemberHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &versioned{
			versions: map[string]uint64{"gone": 1, "here": 1}, reads: map[string]int{},
			items: map[string][]*plimsollv1.Cluster{"gone": {{Name: "gone"}}, "here": {{Name: "here"}}},
		}
		r := newFleet().replica(t, "10.0.0.1:9444")
		r.member("gone", "here")
		f := newFeed(&core{members: r, ownership: r, log: slog.New(slog.DiscardHandler)},
			func(c *plimsollv1.Cluster) lists.Position { return lists.Position{c.GetName()} }, source.read)
		f.version = source.version
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		defer f.enter(ctx)()
		time.Sleep(time.Second)
		synctest.Wait()
		_, now, _ := f.after(f.begin(), 0, 10)
		r.mu.Lock()
		delete(r.statuses, "gone")
		r.mu.Unlock()
		time.Sleep(changeFloor)
		synctest.Wait()
		select {
		case <-now.changed:
		default:
			t.Error("watchers are not woken")
		}
		if found, _, ok := f.after(f.begin(), now.upTo, 10); !ok || len(found) != 1 || !found[0].gone {
			t.Errorf("%v, %t", found, ok)
		}
	})
}
