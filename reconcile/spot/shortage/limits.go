package shortage

import "time"

// maxOwn is how many decisions stand that were made for pods of one namespace, and maxOwnBytes how long their texts are together;
// maxDecisionBytes is how long those of all are. Each has a probe, and whoever may write a template chooses how many there are. A namespace's
// further shortages are not found; what is too much for all is taken from the namespace that has the most.
const maxOwn, maxOwnBytes, maxDecisionBytes = 64, 512 << 10, 8 << 20

// size is how many decisions there are, and how many bytes their texts have.
type size struct{ decisions, bytes int }

// put adds a decision, in the place of one on the same requirements.
func (d *Tracker) put(v *decision) {
	if old := d.decisions[v.text]; old != nil {
		d.drop(old)
	}
	d.decisions[v.text] = v
	d.count(v, 1)
}

// drop takes a decision away.
func (d *Tracker) drop(v *decision) {
	delete(d.decisions, v.text)
	d.count(v, -1)
}

// count counts a decision in, or out. It counts for the namespace that it was made for and for no other: pods of any other may show it as
// well, and neither may it count for nobody then, nor may a tenant fill the room of another by decisions that the other's pods happen to show.
func (d *Tracker) count(v *decision, n int) {
	s := d.sizes[v.of]
	s.decisions += n
	s.bytes += n * len(v.text)
	d.bytes += n * len(v.text)
	if d.sizes[v.of] = s; s.decisions == 0 {
		delete(d.sizes, v.of)
	}
}

// makeRoom reports whether there is room for a decision for a namespace with a text of so many bytes. It takes room from the namespaces
// that have the most, as long as they have more than this one will have: it comes to an end, however many ask in turns.
func (d *Tracker) makeRoom(namespace string, text int, now time.Time) bool {
	own := d.sizes[namespace]
	if own.decisions >= maxOwn || own.bytes+text > maxOwnBytes {
		return false
	}
	for d.bytes+text > maxDecisionBytes {
		most := d.largest()
		if d.sizes[most].bytes <= own.bytes+text {
			return false
		}
		d.end(d.longest(most), now)
	}
	return true
}

// largest is the namespace whose decisions have the most bytes, of several the first by name.
func (d *Tracker) largest() (namespace string) {
	most := -1
	for name, s := range d.sizes {
		if s.bytes > most || s.bytes == most && name < namespace {
			namespace, most = name, s.bytes
		}
	}
	return namespace
}

// longest is the decision for a namespace that has the longest text, of several the last in the order of texts; nil: there is none.
func (d *Tracker) longest(namespace string) (longest *decision) {
	for _, v := range d.decisions {
		if v.of == namespace && (longest == nil || len(v.text) > len(longest.text) || len(v.text) == len(longest.text) && v.text > longest.text) {
			longest = v
		}
	}
	return longest
}
