package integration

import (
	"fmt"
	"time"

	. "github.com/onsi/gomega"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

func windowSpec(p *placing) {
	const replicas = 6
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(50, 1)))
	p.exactly(w, replicas, 50, 1)

	// The namespace's window opens in some hours, by the clock of Kathmandu, which is a quarter of an hour beside all others.
	kathmandu, err := time.LoadLocation("Asia/Kathmandu")
	p.Expect(err).NotTo(HaveOccurred())
	opens := time.Now().Add(6 * time.Hour).Truncate(time.Minute)
	p.annotate(map[string]string{
		fleet.Keys.DisruptionSchedule(): fmt.Sprintf("%d %d * * *", opens.In(kathmandu).Minute(), opens.In(kathmandu).Hour()),
		fleet.Keys.DisruptionDuration(): "10m", fleet.Keys.DisruptionTimezone(): "Asia/Kathmandu",
	})
	p.Eventually(p.shown(w)).Should(WithTransform(func(w *plimsollv1.Workload) string { return w.GetPlacement().GetWindow().GetTimeZone() }, Equal("Asia/Kathmandu")))
	p.Expect(w.Annotate(p.ctx, fleet.Policy(0, 1))).To(Succeed())
	p.Eventually(p.shown(w)).Should(waitsFor(plimsollv1.WaitKind_WAIT_KIND_WINDOW))
	window := p.shown(w)(p.WithT).GetPlacement().GetWindow()
	p.Expect(window.GetOpen()).To(BeFalse())
	p.Expect(window.GetNextOpening().AsTime()).To(BeTemporally("==", opens))
	p.Expect(p.evictions()).To(BeEmpty())

	// A window of the workload's own hides all of the namespace's, its time zone included.
	p.Expect(w.Annotate(p.ctx, map[string]string{
		fleet.Keys.DisruptionSchedule(): "* * * * *", fleet.Keys.DisruptionDuration(): "2m",
	})).To(Succeed())
	p.mixed(w, replicas, 0, 1)
	p.moved(3)
	p.Expect(p.shown(w)(p.WithT).GetPlacement().GetWindow().GetTimeZone()).To(Equal("UTC"))
}
