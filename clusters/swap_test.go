package clusters

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

func TestAChangedSecretIsProvenBesideTheRunningMemberThenTakesItsPlace(t *testing.T) {
	f, old, next := newFleet(t), newFakeAPI(t, "cluster-a"), newFakeAPI(t, "cluster-b")
	f.secrets.put("a", old.kubeconfig())
	former := f.awaitReady("a")
	f.g.Expect(former.RunsOn(old.kubeconfig())).To(BeTrue())
	next.fault("/api/v1/configmaps", hangs)
	f.secrets.put("a", next.kubeconfig())
	f.g.Eventually(f.condition("a", ConditionAccepted)).Should(Equal("Unknown/Proving"))
	f.g.Expect(f.member("a")).To(BeIdenticalTo(former))
	f.g.Expect(former.RunsOn(next.kubeconfig())).To(BeFalse(), "not yet")
	f.g.Expect(f.aware.live("a")()).To(Equal(1))

	next.fault("/api/v1/configmaps", 0)
	f.g.Eventually(func() string {
		member, ok := f.Member("a")
		f.g.Expect(ok).To(BeTrue(), "a member is there at every moment")
		return member.Status().UID
	}).Should(Equal("cluster-b"))
	f.g.Expect(f.awaitReady("a")).NotTo(BeIdenticalTo(former))
	f.g.Expect(f.member("a").RunsOn(next.kubeconfig())).To(BeTrue())
	f.g.Eventually(f.aware.live("a")).Should(Equal(1))
	f.g.Expect(f.aware.of("a")[0].ctx.Err()).To(HaveOccurred(), "the former member's context has ended")
	f.g.Eventually(f.condition("a", ConditionAccepted)).Should(Equal("True/Accepted"))
}

func TestABadChangeLeavesTheRunningMemberAndItsReasonIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		kubeconfig func(t *testing.T) []byte
		want       string
	}{
		"refused by vetting": {func(*testing.T) []byte { return sample.KubeconfigOf(sample.GoodServer, "tokenFile: /"+sample.Canary) }, kubeconfig.ReasonFilePathNotAllowed},
		"wrong token": {func(t *testing.T) []byte {
			api := newFakeAPI(t, "cluster-a")
			kubeconfig := api.kubeconfig()
			api.setToken("another")
			return kubeconfig
		}, kubeconfig.ReasonUnauthorized},
		"nobody listens": {func(*testing.T) []byte { return sample.KubeconfigOf("server: https://127.0.0.1:1", sample.GoodUser) }, ReasonConnectionRefused},
		"fewer permissions": {func(t *testing.T) []byte {
			api := newFakeAPI(t, "cluster-a")
			api.fault("/api/v1/pods", 403)
			return api.kubeconfig()
		}, ReasonKindsMissing},
	} {
		t.Run(name, func(t *testing.T) {
			f, api := newFleet(t), newFakeAPI(t, "cluster-a")
			f.secrets.put("a", api.kubeconfig())
			member := f.awaitReady("a")
			f.secrets.put("a", tc.kubeconfig(t))
			f.g.Eventually(f.condition("a", ConditionAccepted)).Should(Equal("False/" + tc.want))
			f.g.Eventually(f.events.with("a Warning/" + tc.want)).Should(Equal(1))
			f.g.Expect(f.metric("plimsoll_member_refused_total{reason=" + tc.want + "}")()).To(Equal(1.0))
			f.g.Expect(f.state("a")()).To(Equal("Ready/Ready"))
			f.g.Expect(f.aware.members("a")).To(HaveLen(1))
			f.g.Expect(f.aware.live("a")()).To(Equal(1))
			f.g.Expect(member.GetClient().List(context.Background(), &corev1.PodList{})).To(Succeed())

			f.secrets.put("a", api.kubeconfig())
			f.g.Eventually(f.condition("a", ConditionAccepted)).Should(Equal("True/Accepted"))
			f.g.Expect(f.member("a")).To(BeIdenticalTo(member))
		})
	}
}

func TestAMemberWhoseCredentialsExpiredTakesEvenLesserOnes(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	f.secrets.put("a", api.kubeconfig())
	f.awaitReady("a")
	api.setToken("rotated-" + sample.Canary)
	f.g.Eventually(f.state("a")).Should(Equal("Refused/" + kubeconfig.ReasonUnauthorized))
	api.fault("/api/v1/pods", 403)
	f.secrets.put("a", api.kubeconfig())
	f.g.Eventually(f.state("a")).Should(Equal("Degraded/KindsMissing"))
	f.g.Expect(f.aware.live("a")()).To(Equal(1))
}

func TestASecretThatIsDeletedAndCreatedAnewMayLeadElsewhere(t *testing.T) {
	f, old, next := newFleet(t), newFakeAPI(t, "cluster-a"), newFakeAPI(t, "cluster-b")
	f.secrets.put("a", old.kubeconfig())
	f.awaitReady("a")
	f.secrets.remove("a")
	f.secrets.put("a", next.kubeconfig())
	f.g.Eventually(func() string { s, _ := f.Status("a"); return s.UID }).Should(Equal("cluster-b"))
	f.awaitReady("a")
	f.g.Eventually(f.aware.live("a")).Should(Equal(1))
	f.g.Eventually(func() int { f.mu.RLock(); defer f.mu.RUnlock(); return len(f.alive) }).Should(Equal(1))
	f.g.Expect(f.member("a").Status().UID).To(Equal("cluster-b"), "the old member's end did not take the new one along")
}

func TestTheOlderSecretOfTwoForOneClusterWins(t *testing.T) {
	f, one, two := newFleet(t), newFakeAPI(t, "same"), newFakeAPI(t, "same")
	f.secrets.put("older", one.kubeconfig())
	f.awaitReady("older")
	f.secrets.put("younger", two.kubeconfig())
	f.g.Eventually(f.state("younger")).Should(Equal("Refused/DuplicateCluster"))
	status, _ := f.Status("younger")
	f.g.Expect(status.Message).To(ContainSubstring("older"))
	f.g.Eventually(f.events.with("younger Warning/DuplicateCluster")).Should(Equal(1))
	f.g.Expect(f.metric("plimsoll_member_refused_total{reason=DuplicateCluster}")()).To(Equal(1.0))
	f.g.Expect(f.aware.of("younger")).To(BeEmpty())
	f.g.Expect(two.count("GET /api/v1/pods")).To(BeZero(), "no cache is filled twice")

	f.secrets.remove("older")
	f.awaitReady("younger")
	f.g.Eventually(f.aware.live("younger")).Should(Equal(1))
}

func TestTheOlderSecretWinsEvenWhenItIsFoundLater(t *testing.T) {
	f, one, two := newFleet(t), newFakeAPI(t, "same"), newFakeAPI(t, "same")
	one.fault("/*", 503)
	f.secrets.put("older", one.kubeconfig())
	f.g.Eventually(f.state("older")).Should(Equal("Unreachable/NotReady"))
	f.secrets.put("younger", two.kubeconfig())
	f.awaitReady("younger")
	one.fault("/*", 0)
	f.awaitReady("older")
	f.g.Eventually(f.state("younger")).Should(Equal("Refused/DuplicateCluster"))
	f.g.Eventually(f.aware.live("younger")).Should(BeZero())
	f.g.Expect(f.aware.live("older")()).To(Equal(1))
}

func TestControllersThatCannotBeEngagedAreAskedAgain(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	f.aware.failWith(errors.New("not yet"))
	f.secrets.put("a", api.kubeconfig())
	f.awaitReady("a")
	f.g.Expect(f.aware.of("a")).To(BeEmpty())
	f.aware.failWith(nil)
	f.g.Eventually(f.aware.live("a")).Should(Equal(1))
}
