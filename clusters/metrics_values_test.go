package clusters

import (
	"context"
	"io"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheSeriesOfAMemberSayHowItAnswers(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	f.secrets.put("a", api.kubeconfig())
	member, ctx := f.awaitReady("a"), context.Background()
	value := func(series string) float64 { return f.metric(series)() }
	f.g.Expect(value("plimsoll_member_breaker_open{member=a}")).To(BeZero())
	f.g.Expect(value("plimsoll_member_probe_duration_seconds{member=a}")).To(BeNumerically(">=", 1))
	f.g.Expect(value("plimsoll_member_state{member=a,state=Ready}")).To(Equal(1.0))
	f.g.Expect(value("plimsoll_member_state{member=a,state=Unreachable}")).To(BeZero())

	const read, write = "plimsoll_member_requests_total{class=read,code=200,member=a}", "plimsoll_member_request_duration_seconds{class=write,member=a}"
	reads, writes := value(read), value(write)
	for range 3 {
		f.g.Expect(member.Live().List(ctx, &corev1.PodList{})).To(Succeed())
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "new"}}
	f.g.Expect(member.GetClient().Create(ctx, pod)).To(Succeed())
	f.g.Expect(value(read) - reads).To(BeNumerically(">=", 3))
	f.g.Expect(value(write) - writes).To(Equal(1.0))

	api.fault("/readyz", http.StatusInternalServerError)
	f.g.Eventually(f.metric("plimsoll_member_breaker_open{member=a}")).Should(Equal(1.0))
	f.g.Eventually(f.metric("plimsoll_member_state{member=a,state=Unreachable}")).Should(Equal(1.0))
	f.g.Expect(value("plimsoll_member_state{member=a,state=Ready}")).To(BeZero())
	const refused = "plimsoll_member_requests_total{class=read,code=breaker,member=a}"
	before := value(refused)
	f.g.Expect(member.Live().List(ctx, &corev1.PodList{})).NotTo(Succeed())
	f.g.Expect(value(refused) - before).To(Equal(1.0))
	api.fault("/readyz", 0)
	f.g.Eventually(f.metric("plimsoll_member_breaker_open{member=a}")).Should(BeZero())
}

func TestHowLongAMembersEventsWaitIsCounted(t *testing.T) {
	f, _ := hostile(t, emptyPodList, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, `{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"d","resourceVersion":"2"}}}`+"\n"); err != nil {
				return
			}
		}
	})
	const good, bad = "plimsoll_member_paced_seconds_total{member=good}", "plimsoll_member_paced_seconds_total{member=bad}"
	f.g.Eventually(f.metric(bad)).Should(BeNumerically(">", 0))
	f.g.Expect(gathered(f.g, f.metrics)).To(HaveKeyWithValue(good, 0.0))
	f.secrets.remove("bad")
	f.g.Eventually(func() map[string]float64 { return gathered(f.g, f.metrics) }).ShouldNot(HaveKey(bad))
}
