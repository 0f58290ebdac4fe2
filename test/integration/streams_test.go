package integration

import (
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// follower keeps what a stream sends, by member and name; it may be stopped in the middle.
type follower struct {
	mu      sync.Mutex
	known   map[string]string // the label v
	markers map[string]int    // by member and type
	hold    sync.Mutex        // held: the follower does not read
	ended   chan struct{}
}

func followChanges(s *reconcileSite, member string) *follower {
	f := &follower{known: map[string]string{}, markers: map[string]int{}, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		for c := range reconcile.Changes[*corev1.ConfigMap](s.ctx, s.runtime, member) {
			f.hold.Lock()
			f.hear(s, c)
			f.hold.Unlock()
		}
	}()
	return f
}

func (f *follower) hear(s *reconcileSite, c reconcile.Change[*corev1.ConfigMap]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.markers[c.Member+"/"+c.Type.String()]++
	if c.Object == nil || c.Object.Namespace != s.namespace {
		return
	}
	key := c.Member + "/" + c.Object.Name
	if c.Type == reconcile.ChangeDeleted {
		delete(f.known, key)
		return
	}
	f.known[key] = c.Object.Labels["v"]
}

func (f *follower) count(marker string) func() int {
	return func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.markers[marker]
	}
}

func (f *follower) value(key string) func() string {
	return func() string {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.known[key]
	}
}

func TestStreamsOfRealMembers(t *testing.T) {
	fleets.beside(t)
	c := kube.New(t, kube.Options{Name: "streams", Minimal: true})
	s := newReconcileSite(t, c, func(s *reconcileSite) { s.mustRegister(reconcile.For(s.runtime, "c", satisfied).Register()) })
	all := followChanges(s, "")
	s.join("a")
	s.join("b")
	s.g.Eventually(all.count("a/Synced")).Should(Equal(1))
	s.g.Eventually(all.count("b/Synced")).Should(Equal(1))
	one := followChanges(s, "a")
	s.g.Eventually(one.count("a/Synced")).Should(Equal(1))

	busy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "busy", Labels: map[string]string{"v": "0"}}}
	s.g.Expect(s.client.Create(s.ctx, busy)).To(Succeed())
	s.g.Eventually(all.value("b/busy")).Should(Equal("0"))
	s.g.Eventually(one.value("a/busy")).Should(Equal("0"))

	one.hold.Lock() // a reader that is busy elsewhere
	before := one.count("a/Updated")()
	for i := range 200 {
		busy.Labels["v"] = fmt.Sprint(i + 1)
		s.g.Expect(s.client.Update(s.ctx, busy)).To(Succeed())
	}
	s.g.Eventually(all.value("a/busy")).Should(Equal("200"), "another reader is not held up")
	one.hold.Unlock()
	s.g.Eventually(one.value("a/busy")).Should(Equal("200"))
	s.g.Eventually(one.count("a/Resynced")).Should(BeNumerically(">", 0))
	s.g.Expect(one.count("a/Updated")()-before).To(BeNumerically("<", 200), "states were skipped")

	s.unregister("a")
	s.g.Eventually(all.count("a/Disengaged")).Should(Equal(1))
	s.g.Eventually(one.ended).Should(BeClosed())
	s.g.Expect(one.count("a/Disengaged")()).To(Equal(1))
	s.g.Expect(s.client.Delete(s.ctx, busy)).To(Succeed())
	s.g.Eventually(all.value("b/busy")).Should(BeEmpty(), "the other member is followed on")
}
