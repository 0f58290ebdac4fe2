package main

import (
	"maps"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// A window is what was measured while the member did one thing.
type window struct {
	hostility fleet.Hostility
	apart     bool // it did it to the hub that has no good members
	latencies
	bare         latencies     // of the bare handler and the bare watch
	rss          int64         // the most
	processor    time.Duration // that the hub with the good members took
	load         time.Duration // that this process took, in which the hostile member runs
	calls, bytes int64         // that the hostile member sent to the hub's webhooks
}

// latencies are p99s: of admission calls, and from a write to its reconcile or, of the bare watch, to its event.
type latencies struct{ admission, events time.Duration }

// ratios are how a hostility compares. The goals hold for the latencies compared with those beside good behaviour. They are compared
// with those while the same was done to the other hub as well: on this machine the hostile member takes the processors from the good
// ones, which on machines of its own it could not, and both have that. What is left is what a hub passes on from one member to another.
type ratios struct {
	admission, events         float64 // to the windows in which the other hub had it
	calmAdmission, calmEvents float64 // to the windows close by in which the member behaved well
	bareAdmission, bareEvents float64 // of the bare handler and the bare watch, likewise
	rss                       float64
	load                      float64       // of the hostile member, here to there
	processor                 time.Duration // of the hub a window, beyond good behaviour
	memberProcessor           time.Duration // of the hostile member, likewise
	calls, bytes              float64       // that the hostile member sent to webhooks a window
}

// calmBeside is how many windows of good behaviour before and after each window of a hostility it is compared with. The machine becomes slower
// and faster within a run: figures that are minutes apart differ by more than the goals allow, whatever the member does.
const calmBeside = 2

// compare returns the ratios by hostility, each of medians. Memory is compared with the most of the first window: what the hub had
// before anything was hostile.
func compare(windows []window) map[fleet.Hostility]ratios {
	here, apart := map[fleet.Hostility][]window{}, map[fleet.Hostility][]window{}
	for _, w := range windows {
		into := here
		if w.apart {
			into = apart
		}
		into[w.hostility] = append(into[w.hostility], w)
	}
	first := here[fleet.WellBehaved][0]
	result := map[fleet.Hostility]ratios{}
	for hostility, is := range here {
		if hostility == fleet.WellBehaved {
			continue
		}
		there, calm := apart[hostility], calmNear(windows, hostility)
		result[hostility] = ratios{
			admission: ratioOf(is, there, admissionOf), events: ratioOf(is, there, eventsOf),
			calmAdmission: ratioOf(is, calm, admissionOf), calmEvents: ratioOf(is, calm, eventsOf),
			bareAdmission: ratioOf(is, calm, bareAdmissionOf), bareEvents: ratioOf(is, calm, bareEventsOf),
			rss: medianOf(is, rssOf) / rssOf(first), load: ratioOf(is, there, loadOf),
			processor:       time.Duration(medianOf(is, processorOf) - medianOf(calm, processorOf)),
			memberProcessor: time.Duration(medianOf(is, loadOf) - medianOf(calm, loadOf)),
			calls:           medianOf(is, callsOf), bytes: medianOf(is, bytesOf),
		}
	}
	return result
}

// calmNear returns the windows of good behaviour at the good members' hub, in their order, that were measured closest to those of a hostility.
func calmNear(windows []window, hostility fleet.Hostility) (near []window) {
	var calm, is []int
	for i, w := range windows {
		switch {
		case w.apart:
		case w.hostility == fleet.WellBehaved:
			calm = append(calm, i)
		case w.hostility == hostility:
			is = append(is, i)
		}
	}
	var beside []int
	for _, i := range is {
		next, _ := slices.BinarySearch(calm, i)
		beside = append(beside, calm[max(next-calmBeside, 0):min(next+calmBeside, len(calm))]...)
	}
	slices.Sort(beside)
	for _, c := range slices.Compact(beside) {
		near = append(near, windows[c])
	}
	return near
}

func admissionOf(w window) float64     { return float64(w.admission) }
func eventsOf(w window) float64        { return float64(w.events) }
func bareAdmissionOf(w window) float64 { return float64(w.bare.admission) }
func bareEventsOf(w window) float64    { return float64(w.bare.events) }
func rssOf(w window) float64           { return float64(w.rss) }
func loadOf(w window) float64          { return float64(w.load) }
func callsOf(w window) float64         { return float64(w.calls) }
func bytesOf(w window) float64         { return float64(w.bytes) }
func processorOf(w window) float64     { return float64(w.processor) }

func ratioOf(is, was []window, value func(window) float64) float64 {
	return medianOf(is, value) / medianOf(was, value)
}

func medianOf(windows []window, value func(window) float64) float64 {
	values := make([]float64, len(windows))
	for i, w := range windows {
		values[i] = value(w)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// suspicious returns the worst of the hostilities that were measured once and missed a goal, in latency or in memory. The ratios to the
// control have no goal: a single window at the other hub in which the machine had something else to do makes them too good or too bad. What
// is measured again changes what the others are compared with, so the next one is found after that.
func suspicious(windows []window) (worst fleet.Hostility, found bool) {
	times := map[fleet.Hostility]int{}
	for _, w := range windows {
		if !w.apart {
			times[w.hostility]++
		}
	}
	compared, most := compare(windows), ratioAllowed
	for _, hostility := range slices.Sorted(maps.Keys(compared)) {
		is := compared[hostility]
		if ratio := max(is.calmAdmission, is.calmEvents, is.rss); ratio > most && times[hostility] == 1 {
			worst, most, found = hostility, ratio, true
		}
	}
	return worst, found
}

// judge records the worst ratios of the hostilities that come alone, and of all at once in entries of their own, and notes each.
func (s *hostileSite) judge() {
	report := s.bench.report
	compared := compare(s.windows)
	for _, hostility := range slices.Sorted(maps.Keys(compared)) {
		is := compared[hostility]
		report.Note("hostile, %s: admission p99 times %.2f (control %.2f, a bare handler %.2f), event to reconcile p99 times %.2f (control %.2f, a bare watch %.2f), memory times %.2f; the hub took %+.2f s of a processor, the member %.2f s, %.2f times what it took at the other hub; %.0f calls, %.0f MB",
			hostility, is.calmAdmission, is.admission, is.bareAdmission, is.calmEvents, is.events, is.bareEvents, is.rss, is.processor.Seconds(), is.memberProcessor.Seconds(), is.load, is.calls, is.bytes/1e6)
	}
	for name, value := range judged(compared) {
		report.Record(name, value)
	}
	report.Note("hostile: %d windows of %s; the hostile member's own load runs on the same machine", len(s.windows), hostileWindow)
}

// judged returns the figures by the names of their entries. Those of the processor, of the
// control and of the bare processes are of all hostilities.
func judged(compared map[fleet.Hostility]ratios) map[string]float64 {
	figures := map[string]float64{}
	worst := func(name string, ratio float64) { figures[name] = max(figures[name], ratio) }
	for hostility, is := range compared {
		entries := "hostile-"
		if hostility == fleet.AllHostilities {
			entries = "hostile-all-"
		}
		worst(entries+"rss-ratio", is.rss)
		worst(entries+"admission-ratio", is.calmAdmission)
		worst(entries+"event-ratio", is.calmEvents)
		worst("hostile-admission-control-ratio", is.admission)
		worst("hostile-event-control-ratio", is.events)
		worst("hostile-admission-bare-ratio", is.calmAdmission/is.bareAdmission)
		worst("hostile-event-bare-ratio", is.calmEvents/is.bareEvents)
		worst("hostile-processor-percent", 100*is.processor.Seconds()/(warmup+hostileWindow).Seconds())
	}
	return figures
}
