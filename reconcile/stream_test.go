package reconcile

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
)

// listener reads a stream in the background, one change whenever it is let.
type listener struct {
	mu    sync.Mutex
	heard []string
	errs  []error
	turn  chan struct{} // nil: it reads as fast as it can
	ended chan struct{}
}

func listenTo(changes iter.Seq[Change[*corev1.ConfigMap]], turn chan struct{}) *listener {
	l := &listener{turn: turn, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		for c := range changes {
			l.note(c)
			if l.turn != nil {
				<-l.turn
			}
		}
	}()
	return l
}

func (l *listener) note(c Change[*corev1.ConfigMap]) {
	words := c.Member + " " + c.Type.String()
	if c.Object != nil {
		words += " " + c.Object.Name + c.Object.Labels["v"]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, words)
	if c.Err != nil {
		l.errs = append(l.errs, c.Err)
	}
}

// words are what was heard since it was last asked.
func (l *listener) words() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	words := l.heard
	l.heard = nil
	return words
}

func (l *listener) over() bool {
	synctest.Wait()
	return members.IsClosed(l.ended)
}

func labelled(name, value string) *corev1.ConfigMap {
	cm := configMap(name)
	cm.Labels = map[string]string{"v": value}
	return cm
}

func streamSite(t *testing.T) (*hub, *Controller) {
	h := newHub(t, Options{Resync: -1})
	return h, launch(h, For(h.Runtime, "c", counting(&calls{})))
}

func expectWords(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAStreamTellsWhatIsThereThenWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := streamSite(t)
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		a.add(configMap("two"))
		synctest.Wait()
		all := listenTo(Changes[*corev1.ConfigMap](h.ctx, h.Runtime, "a"), nil)
		first := all.words()
		slices.Sort(first[:2])
		expectWords(t, "at first", first, "a Added one", "a Added two", "a Synced")
		a.modify(labelled("one", "+"))
		expectWords(t, "a change", all.words(), "a Updated one+")
		a.remove(labelled("one", "+"))
		a.add(configMap("three"))
		expectWords(t, "more", all.words(), "a Deleted one+", "a Added three")
		second := listenTo(Changes[*corev1.ConfigMap](h.ctx, h.Runtime, "a"), nil)
		if words := second.words(); len(words) != 3 || words[2] != "a Synced" {
			t.Errorf("a second reader heard %v", words)
		}
		expectWords(t, "the first again", all.words())
		h.cancel()
		if !all.over() || !second.over() {
			t.Error("a stream goes on though its context has ended")
		}
	})
}

func TestAStreamOfOneMemberEndsWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := streamSite(t)
		a, leave := h.join(c, "a", &corev1.ConfigMap{})
		stranger := listenTo(Changes[*corev1.ConfigMap](h.ctx, h.Runtime, "nobody"), nil)
		expectWords(t, "an unknown member", stranger.words(), "nobody Disengaged")
		if !stranger.over() || !strings.Contains(stranger.errs[0].Error(), "the kind is not cached in the member") || !strings.Contains(stranger.errs[0].Error(), "member nobody") {
			t.Errorf("over: %v, %v", stranger.over(), stranger.errs)
		}
		l := listenTo(Changes[*corev1.ConfigMap](h.ctx, h.Runtime, "a"), nil)
		expectWords(t, "at first", l.words(), "a Synced")
		a.uninstall(&corev1.ConfigMap{})
		expectWords(t, "the kind goes", l.words(), "a Disengaged")
		if !l.over() || !strings.Contains(l.errs[0].Error(), "the member no longer has the kind") {
			t.Errorf("over: %v, %v", l.over(), l.errs)
		}
		b, leaveB := h.join(c, "b", &corev1.ConfigMap{})
		b.add(configMap("one"))
		synctest.Wait()
		l = listenTo(Changes[*corev1.ConfigMap](h.ctx, h.Runtime, "b"), nil)
		expectWords(t, "another", l.words(), "b Added one", "b Synced")
		leaveB()
		expectWords(t, "the member goes", l.words(), "b Disengaged")
		if !l.over() || !strings.Contains(l.errs[0].Error(), "the member left") {
			t.Errorf("over: %v, %v", l.over(), l.errs)
		}
		leave()
		h.cancel()
	})
}

func TestAStreamOfAllMembersFollowsThoseThatComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := streamSite(t)
		all := listenTo(Changes[*corev1.ConfigMap](h.ctx, h.Runtime, ""), nil)
		expectWords(t, "nobody is there", all.words())
		a, leave := h.join(c, "a", &corev1.ConfigMap{})
		expectWords(t, "a comes", all.words(), "a Synced")
		a.add(configMap("one"))
		expectWords(t, "and has something", all.words(), "a Added one")
		b, _ := h.join(c, "b")
		expectWords(t, "b has no such kind", all.words())
		b.install(&corev1.ConfigMap{}, configMap("two"))
		h.engage(b.ctx, c, "b", b)
		expectWords(t, "now it has", all.words(), "b Added two", "b Synced")
		leave()
		expectWords(t, "a goes", all.words(), "a Disengaged")
		h.join(c, "a", &corev1.ConfigMap{})
		expectWords(t, "a is back", all.words(), "a Synced")
		h.join(c, "a", &corev1.ConfigMap{}) // another instance, while the first is still there
		if h.cancel(); !all.over() {
			t.Error("it goes on though its context has ended")
		}
	})
}

func TestAReaderThatFallsBehindIsResynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := streamSite(t)
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("busy"))
		synctest.Wait()
		turn := make(chan struct{})
		slow := listenTo(Changes[*corev1.ConfigMap](h.ctx, h.Runtime, "a"), turn)
		expectWords(t, "at first", slow.words(), "a Added busy")
		for i := range 1000 {
			a.modify(labelled("busy", fmt.Sprint("-", i)))
			a.add(configMap(fmt.Sprint("brief-", i)))
			a.remove(configMap(fmt.Sprint("brief-", i)))
		}
		synctest.Wait()
		close(turn)
		expectWords(t, "afterwards", slow.words(), "a Synced", "a Updated busy-999", "a Resynced")
		h.cancel()
	})
}

func TestAReaderThatLeavesTheLoopLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := streamSite(t)
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		handlers := a.handlers(&corev1.ConfigMap{})
		for range Changes[*corev1.ConfigMap](context.Background(), h.Runtime, "") {
			break
		}
		synctest.Wait()
		if n := a.handlers(&corev1.ConfigMap{}); n != handlers {
			t.Errorf("%d handlers, want the %d from before", n, handlers)
		}
		if n := h.instances.Listeners(); n != 1 {
			t.Errorf("%d listeners, want that of the dependencies", n)
		}
		h.cancel()
	})
}
