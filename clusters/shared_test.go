package clusters

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
)

// forAll makes a Secret of annotations that hold for all members.
func forAll(annotations map[string]string) func(*corev1.Secret) {
	return func(s *corev1.Secret) {
		s.Labels, s.Annotations = map[string]string{AllMembersLabel: "true"}, annotations
	}
}

func TestAnnotationsForAllMembersHoldForThoseThatJoinLater(t *testing.T) {
	f, first, second := newFleet(t), newFakeAPI(t, "cluster-a"), newFakeAPI(t, "cluster-b")
	shared := func(name string) func() map[string]string {
		return func() map[string]string { status, _ := f.Status(name); return status.Registration.Shared }
	}
	f.secrets.put("a", first.kubeconfig())
	f.awaitReady("a")
	f.g.Expect(shared("a")()).To(BeNil())

	paused := map[string]string{CordonedAnnotation: "true"}
	f.secrets.put("everywhere", []byte(sample.Canary), forAll(map[string]string{
		CordonedAnnotation: "true", "team": "shop", corev1.LastAppliedConfigAnnotation: sample.Canary,
	}))
	f.g.Eventually(shared("a")).Should(Equal(paused))
	f.secrets.put("b", second.kubeconfig())
	f.awaitReady("b")
	f.g.Expect(shared("b")()).To(Equal(paused))
	f.g.Expect(f.Statuses()).To(HaveLen(2), "it is no member")

	f.secrets.remove("everywhere")
	f.g.Eventually(shared("a")).Should(BeNil())
	f.g.Eventually(shared("b")).Should(BeNil())
}

func TestNoMemberIsSeenBeforeWhatHoldsForAllMembers(t *testing.T) {
	api := newFakeAPI(t, "cluster-a")
	f := newFleet(t, func(o *Options) {
		secrets := o.Secrets.(*fakeSecrets)
		secrets.put("a", api.kubeconfig())
		secrets.put("everywhere", nil, forAll(map[string]string{CordonedAnnotation: "true"}))
		secrets.fails = map[string]int{AllMembersLabel + "=true": 1} // so that registrations would be read long before
	})
	early := make(chan Event, 100)
	defer f.Subscribe(func(e Event) { early <- e })()
	f.awaitReady("a")
	for len(early) > 0 {
		f.g.Expect((<-early).Status.Registration.Shared).To(HaveKey(CordonedAnnotation))
	}
}

func TestASwitchThatIsOffInOneSecretDoesNotTakeBackWhatAnotherSays(t *testing.T) {
	f := newFleet(t)
	f.secrets.put("x", nil, forAll(map[string]string{CordonedAnnotation: "false"}))
	f.secrets.put("y", nil, forAll(map[string]string{CordonedAnnotation: "maintenance"}))
	f.secrets.put("z", nil, forAll(map[string]string{CordonedAnnotation: "false"}))
	f.g.Eventually(f.Provider.secrets.shared).Should(Equal(map[string]string{CordonedAnnotation: "maintenance"}))
}
