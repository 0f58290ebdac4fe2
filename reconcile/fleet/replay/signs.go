package replay

import "math/bits"

// What may foretell that a zone loses its capacity: how long it has held, since when none was lost in its region and anywhere, how long
// the zone held before and was without, how many zones have capacity in the region and in all, and the time of day.
const (
	signAge = iota
	signRegion
	signBefore
	signDrought
	signRegionUp
	signUp
	signAny
	signHour
	signKinds
)

// ofZone says which signs have a table for each zone: the others have one for all.
var ofZone = [signKinds]bool{signAge: true, signBefore: true, signRegionUp: true, signHour: true}

// signClasses is how many classes a sign has at most, and mostLikely the highest prediction.
const (
	signClasses = 64
	mostLikely  = 0.95
)

// signs follow a trace.
type signs struct {
	trace                Trace
	age, before, drought []int
	region               map[string]int
	any                  int
}

// Predictions are fitted in so many rounds. prior losses more are taken to be as expected, so that a class that was seen once says little.
const (
	fitRounds = 24
	fitPrior  = 0.3
)

// table has a number for each class of a sign.
type table = [signClasses]float64

// foreteller predicts losses: how likely one is is the product of what each sign says.
type foreteller struct {
	trace   Trace
	factors [signKinds][]table // by zone; the last is for signs that have one table for all
}

// foretell predicts for each sample how likely each zone with capacity has lost it then, by signs of the time before. How much a class of a
// sign says is found in the whole trace, its future included.
func foretell(t Trace) [][]float64 {
	f := foreteller{trace: t}
	for kind := range f.factors {
		f.factors[kind] = make([]table, len(t.Zones)+1)
		for at := range f.factors[kind] {
			for class := range signClasses {
				f.factors[kind][at][class] = 1
			}
		}
	}
	for range fitRounds {
		for kind := range signKinds {
			f.fit(kind)
		}
	}
	seen := make([][]float64, t.Samples())
	for k := range seen {
		seen[k] = make([]float64, len(t.Zones))
	}
	follow(t, func(sample, zone int, classes *[signKinds]int) { seen[sample][zone] = f.predict(zone, classes) })
	return seen
}

// fit has a sign say what makes as many losses likely in each of its classes as there were.
func (f *foreteller) fit(kind int) {
	expected, lost := make([]table, len(f.factors[kind])), make([]table, len(f.factors[kind]))
	follow(f.trace, func(sample, zone int, classes *[signKinds]int) {
		at := f.at(kind, zone)
		expected[at][classes[kind]] += f.predict(zone, classes)
		lost[at][classes[kind]] += float64(1 - f.trace.Zones[zone].Capacity[sample])
	})
	for at := range expected {
		for class := range signClasses {
			f.factors[kind][at][class] *= (lost[at][class] + fitPrior) / (expected[at][class] + fitPrior)
		}
	}
}

// at is the table of a sign for a zone.
func (f *foreteller) at(kind, zone int) int {
	if ofZone[kind] {
		return zone
	}
	return len(f.trace.Zones)
}

func (f *foreteller) predict(zone int, classes *[signKinds]int) float64 {
	p := 1.0
	for kind, class := range classes {
		p *= f.factors[kind][f.at(kind, zone)][class]
	}
	return min(p, mostLikely)
}

// follow calls a function for each sample but the first and each zone that had capacity in the one before, with the signs of that time.
func follow(t Trace, visit func(sample, zone int, classes *[signKinds]int)) {
	n := len(t.Zones)
	s := signs{trace: t, age: make([]int, n), before: make([]int, n), drought: make([]int, n), region: map[string]int{}}
	for z := range t.Zones {
		s.region[t.Zones[z].Region] = 0
	}
	for k := 1; k < t.Samples(); k++ {
		up, regionUp := 0, map[string]int{}
		for z := range t.Zones {
			up += t.Zones[z].Capacity[k-1]
			regionUp[t.Zones[z].Region] += t.Zones[z].Capacity[k-1]
		}
		for z := range t.Zones {
			if t.Zones[z].Capacity[k-1] > 0 {
				region := t.Zones[z].Region
				visit(k, z, &[signKinds]int{
					signAge: bits.Len(uint(s.age[z])), signRegion: bits.Len(uint(s.region[region])), signBefore: bits.Len(uint(s.before[z])),
					signDrought: bits.Len(uint(s.drought[z])), signRegionUp: min(regionUp[region], signClasses-1), signUp: min(up, signClasses-1),
					signAny: bits.Len(uint(s.any)), signHour: int(int64(k) * t.Gap / 7200 % 12),
				})
			}
		}
		s.see(k)
	}
}

// see takes in what has changed with a sample.
func (s *signs) see(k int) {
	s.any++
	for region := range s.region {
		s.region[region]++
	}
	for z := range s.trace.Zones {
		zone := &s.trace.Zones[z]
		was, is := zone.Capacity[k-1] > 0, zone.Capacity[k] > 0
		switch {
		case was && is:
			s.age[z]++
		case was:
			s.before[z], s.age[z], s.drought[z] = s.age[z], 0, 1
			s.region[zone.Region], s.any = 0, 0
		case !is:
			s.drought[z]++
		}
	}
}
