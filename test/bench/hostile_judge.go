package main

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// A window is what was measured while the member did one thing.
type window struct {
	hostility         fleet.Hostility
	apart             bool          // it did it to the hub that has no good members
	admission, events time.Duration // p99
	rss               int64         // the most
	processor         time.Duration // that the hub with the good members took
	load              time.Duration // that this process took, in which the hostile member runs
}

// ratios are how a hostility compares. The goals hold for the latencies compared with those beside good behaviour. They are compared
// with those while the same was done to the other hub as well: on this machine the hostile member takes the processors from the good
// ones, which on machines of its own it could not, and both have that. What is left is what a hub passes on from one member to another.
type ratios struct {
	admission, events         float64 // to the windows in which the other hub had it
	calmAdmission, calmEvents float64 // to the windows in which the member behaved well
	rss                       float64
	load                      float64       // of the hostile member, here to there
	processor                 time.Duration // of the hub a window, beyond good behaviour
}

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
	calm := here[fleet.WellBehaved]
	result := map[fleet.Hostility]ratios{}
	for hostility, is := range here {
		if hostility == fleet.WellBehaved {
			continue
		}
		there := apart[hostility]
		result[hostility] = ratios{
			admission: ratioOf(is, there, admissionOf), events: ratioOf(is, there, eventsOf),
			calmAdmission: ratioOf(is, calm, admissionOf), calmEvents: ratioOf(is, calm, eventsOf),
			rss: medianOf(is, rssOf) / rssOf(calm[0]), load: ratioOf(is, there, loadOf),
			processor: time.Duration(medianOf(is, processorOf) - medianOf(calm, processorOf)),
		}
	}
	return result
}

func admissionOf(w window) float64 { return float64(w.admission) }
func eventsOf(w window) float64    { return float64(w.events) }
func rssOf(w window) float64       { return float64(w.rss) }
func loadOf(w window) float64      { return float64(w.load) }
func processorOf(w window) float64 { return float64(w.processor) }

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

// suspicious are the hostilities with ratios of latency that are not allowed, the worst first; those to good behaviour count as well,
// because a single window at the other hub in which the machine had something else to do makes the ratio to it too good.
func suspicious(compared map[fleet.Hostility]ratios) (found []fleet.Hostility) {
	worst := func(hostility fleet.Hostility) float64 {
		is := compared[hostility]
		return max(is.admission, is.events, is.calmAdmission, is.calmEvents)
	}
	for _, hostility := range slices.Sorted(maps.Keys(compared)) {
		if worst(hostility) > ratioAllowed {
			found = append(found, hostility)
		}
	}
	slices.SortStableFunc(found, func(a, b fleet.Hostility) int { return cmp.Compare(worst(b), worst(a)) })
	return found[:min(len(found), hostileSuspects)]
}

// judge records the worst ratios, and notes all of them.
func (s *hostileSite) judge() {
	var worst ratios
	report := s.bench.report
	compared := compare(s.windows)
	for _, hostility := range slices.Sorted(maps.Keys(compared)) {
		is := compared[hostility]
		worst = ratios{
			admission: max(worst.admission, is.admission), events: max(worst.events, is.events), rss: max(worst.rss, is.rss),
			calmAdmission: max(worst.calmAdmission, is.calmAdmission), calmEvents: max(worst.calmEvents, is.calmEvents),
			processor: max(worst.processor, is.processor),
		}
		report.Note("hostile, %s: admission p99 times %.2f (control %.2f), event to reconcile p99 times %.2f (%.2f), memory times %.2f; the hub took %+.2f s of a processor, the member %.2f times what it took at the other hub",
			hostility, is.calmAdmission, is.admission, is.calmEvents, is.events, is.rss, is.processor.Seconds(), is.load)
	}
	report.Record("hostile-rss-ratio", worst.rss)
	report.Record("hostile-admission-ratio", worst.calmAdmission)
	report.Record("hostile-event-ratio", worst.calmEvents)
	report.Record("hostile-admission-control-ratio", worst.admission)
	report.Record("hostile-event-control-ratio", worst.events)
	report.Record("hostile-processor-percent", 100*worst.processor.Seconds()/(warmup+hostileWindow).Seconds())
	report.Note("hostile: %d windows of %s; the hostile member's own load runs on the same machine", len(s.windows), hostileWindow)
}
