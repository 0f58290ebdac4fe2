package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// in is a window with latencies in milliseconds and memory in megabytes.
func in(hostility fleet.Hostility, apart bool, admission, events time.Duration, rss int64) window {
	return window{
		hostility: hostility, apart: apart, latencies: latencies{admission * time.Millisecond, events * time.Millisecond}, rss: rss << 20,
		bare: latencies{time.Millisecond, time.Millisecond}, processor: 2 * time.Second, load: time.Second,
	}
}

func TestAHostilityIsComparedWithGoodBehaviourAndWithTheOtherHub(t *testing.T) {
	g := NewWithT(t)
	busy := in(fleet.HugeCalls, false, 12, 18, 120)
	busy.processor, busy.load = 3*time.Second, 9*time.Second
	busy.calls, busy.bytes = 40, 3e6
	busy.bare = latencies{2 * time.Millisecond, 4 * time.Millisecond}
	compared := compare([]window{
		in(fleet.WellBehaved, false, 4, 2, 100), in(fleet.WellBehaved, false, 6, 4, 300),
		busy, in(fleet.HugeCalls, true, 10, 15, 500),
	})
	g.Expect(compared).To(HaveLen(1))
	is := compared[fleet.HugeCalls]
	g.Expect(is.admission).To(BeNumerically("~", 1.2))
	g.Expect(is.events).To(BeNumerically("~", 1.2))
	g.Expect(is.calmAdmission).To(BeNumerically("~", 2.4))
	g.Expect(is.calmEvents).To(BeNumerically("~", 6))
	g.Expect(is.bareAdmission).To(BeNumerically("~", 2))
	g.Expect(is.bareEvents).To(BeNumerically("~", 4))
	g.Expect(is.rss).To(BeNumerically("~", 1.2), "what the hub had before anything was hostile")
	g.Expect(is.load).To(BeNumerically("~", 9))
	g.Expect(is.processor).To(Equal(time.Second), "beyond good behaviour")
	g.Expect(is.memberProcessor).To(Equal(8*time.Second), "beyond good behaviour")
	g.Expect(is.calls).To(BeNumerically("~", 40))
	g.Expect(is.bytes).To(BeNumerically("~", 3e6))
}

func TestMedianWindowsCount(t *testing.T) {
	g := NewWithT(t)
	compared := compare([]window{
		in(fleet.WellBehaved, false, 5, 5, 100),
		in(fleet.Redirects, false, 5, 5, 100), in(fleet.Redirects, false, 500, 500, 900), in(fleet.Redirects, false, 7, 7, 110),
		in(fleet.Redirects, true, 7, 7, 100), in(fleet.Redirects, true, 1, 1, 100), in(fleet.Redirects, true, 900, 900, 100),
	})
	g.Expect(compared[fleet.Redirects].admission).To(BeNumerically("~", 1))
	g.Expect(compared[fleet.Redirects].events).To(BeNumerically("~", 1))
	g.Expect(compared[fleet.Redirects].rss).To(BeNumerically("~", 1.1))
}

func TestAHostilityIsComparedWithGoodBehaviourOfTheSameTime(t *testing.T) {
	g := NewWithT(t)
	var windows []window
	for _, slow := range []time.Duration{1, 1, 1, 10, 10, 10} { // a machine that becomes slower
		windows = append(windows, in(fleet.WellBehaved, false, 5*slow, 5*slow, 100), in(fleet.WellBehaved, true, 1, 1, 100))
	}
	windows = append(windows, in(fleet.Redirects, false, 60, 60, 100), in(fleet.Redirects, true, 60, 60, 100))
	compared := compare(windows)
	g.Expect(compared[fleet.Redirects].calmAdmission).To(BeNumerically("~", 1.2), "not 2.2, of the whole run's median")
	g.Expect(compared[fleet.Redirects].calmEvents).To(BeNumerically("~", 1.2))

	windows = append(windows, in(fleet.WellBehaved, false, 40, 40, 100), in(fleet.WellBehaved, false, 40, 40, 100), in(fleet.WellBehaved, false, 1, 1, 100))
	g.Expect(compare(windows)[fleet.Redirects].calmAdmission).To(BeNumerically("~", 60./45), "as many before as after it")
}

func TestAllHostilitiesAtOnceHaveEntriesOfTheirOwn(t *testing.T) {
	g := NewWithT(t)
	slowed := in(fleet.AllHostilities, false, 10, 20, 200)
	slowed.bare = latencies{2 * time.Millisecond, 5 * time.Millisecond} // the machine, and not the hub
	figures := judged(compare([]window{
		in(fleet.WellBehaved, false, 5, 5, 100),
		in(fleet.Redirects, false, 6, 5, 100), in(fleet.Redirects, true, 6, 5, 100),
		in(fleet.HugeCalls, false, 5, 7, 120), in(fleet.HugeCalls, true, 5, 7, 100),
		slowed, in(fleet.AllHostilities, true, 5, 5, 100),
	}))
	g.Expect(figures).To(Equal(map[string]float64{
		"hostile-rss-ratio": 1.2, "hostile-admission-ratio": 1.2, "hostile-event-ratio": 1.4,
		"hostile-all-rss-ratio": 2, "hostile-all-admission-ratio": 2, "hostile-all-event-ratio": 4,
		"hostile-admission-control-ratio": 2, "hostile-event-control-ratio": 4,
		"hostile-admission-bare-ratio": 1.2, "hostile-event-bare-ratio": 1.4, "hostile-processor-percent": 0,
	}))
}

func TestWhatMissesAGoalIsTriedAgainWhateverTheControl(t *testing.T) {
	g := NewWithT(t)
	windows := []window{
		in(fleet.WellBehaved, false, 5, 5, 100),
		in(fleet.SlowBodies, false, 6, 6, 100), in(fleet.SlowBodies, true, 5, 5, 100),
		in(fleet.EndlessEvents, false, 6, 10, 100), in(fleet.EndlessEvents, true, 60, 60, 100),
		in(fleet.Redirects, false, 20, 6, 100), in(fleet.Redirects, true, 5, 5, 100),
		in(fleet.HugeCalls, false, 5, 5, 160), in(fleet.HugeCalls, true, 5, 5, 100),
		in(fleet.OtherKinds, false, 4, 4, 100), in(fleet.OtherKinds, true, 1, 1, 100),
	}
	next := func() fleet.Hostility {
		hostility, _ := suspicious(windows)
		return hostility
	}
	g.Expect(next()).To(Equal(fleet.Redirects), "the worst")
	windows = append(windows, in(fleet.Redirects, false, 20, 6, 100), in(fleet.WellBehaved, false, 3, 3, 100))
	g.Expect(next()).To(Equal(fleet.EndlessEvents), "that was not tried again")
	windows = append(windows, in(fleet.EndlessEvents, false, 6, 6, 100))
	g.Expect(next()).To(Equal(fleet.HugeCalls), "for its memory")
	windows = append(windows, in(fleet.HugeCalls, false, 5, 5, 100))
	for range 3 {
		windows = append(windows, in(fleet.WellBehaved, false, 3, 3, 100))
	}
	g.Expect(next()).To(Equal(fleet.SlowBodies), "now that good behaviour turned out to be faster")
	windows = append(windows, in(fleet.SlowBodies, false, 6, 6, 100))
	_, found := suspicious(windows)
	g.Expect(found).To(BeFalse(), "a ratio to the control has no goal")
}
