package integration

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/hub/leadership"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// leaderSite is one replica of a program that is made with the framework and contends for a Lease. Its fence is open, so that
// nothing but [leadership.Lease.Hold] keeps its keys from running.
type leaderSite struct {
	*reconcileSite
	lease *leadership.Lease
}

func newLeaderSite(t *testing.T, c *kube.Cluster, name string) *leaderSite {
	t.Helper()
	l := &leaderSite{}
	l.reconcileSite = newReconcileSite(t, c, func(s *reconcileSite) {
		var err error
		l.lease, err = leadership.New(c.Config(), leadership.Options{Namespace: metav1.NamespaceDefault, Name: "tool", Identity: leadership.NewIdentity(name, "")})
		s.g.Expect(err).NotTo(HaveOccurred())
		l.lease.Hold(s.runtime)
		s.mustRegister(reconcile.For(s.runtime, "c", satisfied).Register())
	})
	l.join("a")
	return l
}

// contend runs for the Lease until stop is called, which returns when the Lease was given up, or until the test ends.
func (l *leaderSite) contend() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	l.run(func(whole context.Context) error {
		defer close(ended)
		defer context.AfterFunc(whole, cancel)()
		return l.lease.Run(ctx)
	})
	return func() {
		cancel()
		<-ended
	}
}

// why gives the reason for which keys of the member are held; empty: they are not.
func (l *leaderSite) why() string {
	reason, _ := l.runtime.Held("a")
	return reason
}

// leaseHoldSpec: keys wait in each replica until it has the Lease, run then without a list, and wait again when it is lost.
func leaseHoldSpec(t *testing.T, c *kube.Cluster) {
	first, second := newLeaderSite(t, c, "first"), newLeaderSite(t, c, "second")
	key := func(name string) reconcile.Key { return first.key("c", "a", name) }
	at := func(l *leaderSite, name string) func() reconcile.Record {
		return func() reconcile.Record {
			record, _ := l.runtime.Lookup(key(name))
			return record
		}
	}
	held := And(HaveField("State", reconcile.StateHeld), HaveField("Runs", BeZero()))
	done := HaveField("LastOutcome", reconcile.OutcomeDone)

	first.configMap("one")
	first.g.Eventually(at(first, "one")).Should(held, "nobody has the Lease")
	first.g.Eventually(at(second, "one")).Should(held)

	stop := first.contend()
	first.g.Eventually(at(first, "one")).Should(done)
	second.contend()
	first.g.Eventually(second.why).Should(ContainSubstring("first"), "it has found out who acts")
	first.configMap("two")
	first.g.Eventually(at(first, "two")).Should(done)
	first.g.Eventually(at(second, "two")).Should(held)
	first.g.Expect(at(second, "one")()).To(held)

	mark, err := c.Audit().Mark()
	first.g.Expect(err).NotTo(HaveOccurred())
	stop()
	for _, name := range []string{"one", "two"} {
		first.g.Eventually(at(second, name)).Should(done)
	}
	listed, err := c.Audit().Since(mark, kube.Lists, kube.OnResource("configmaps"))
	first.g.Expect(err).NotTo(HaveOccurred())
	first.g.Expect(listed).To(BeEmpty())
	first.configMap("three")
	first.g.Eventually(at(second, "three")).Should(done)
	first.g.Eventually(at(first, "three")).Should(held, "it gave the Lease up")

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "tool"}}
	first.g.Eventually(func() error {
		if err := first.client.Get(first.ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity = ptr.To(leadership.NewIdentity("person", ""))
		return first.client.Update(first.ctx, lease)
	}).Should(Succeed())
	first.g.Eventually(second.why).Should(ContainSubstring("person"))
	first.configMap("four")
	first.g.Eventually(at(second, "four")).Should(held, "a person took the Lease")
}
