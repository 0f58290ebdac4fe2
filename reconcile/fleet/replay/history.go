package replay

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// MaxHistory bounds a history in a ConfigMap, in bytes: one holds 1 MiB, with its metadata. MaxHistoryFiles bounds one in files.
const (
	MaxHistory      = 512 << 10
	MaxHistoryFiles = 8 << 20
)

// historyFile ends the names of files; historyBetween is between a shape and a member, and in no name of Kubernetes.
const historyFile, historyBetween = ".json", "_"

// maxPlacements is how many names of placements a file has, and maxShape how many bytes of its shape, which is there for people to
// read: the file's name has the checksum of the whole. So no shape, however much its pods ask for, pushes out what is known about others.
const (
	maxPlacements = 16
	maxShape      = 4 << 10
)

// History is what was seen of the spot supply of members, by the shape of the pods it is for, as changes: each file of it is a zone
// that [FindTraces] reads. It is not safe for concurrent use.
type History struct {
	zones   map[string]*historyZone
	gone    map[string]bool // files that were forgotten since [History.Changed] or [History.Files] was called
	began   int64           // when something was noted first since it was read; 0: nothing was
	dropped int
}

// historyZone is one file.
type historyZone struct {
	zoneFile
	text    []byte // nil: it is to be written again
	changed bool   // since [History.Changed] was called
	noted   int64  // when it was noted last, whether that was a change or not; 0: not since it was read
	ended   bool   // its member is not registered any more
}

// Observation is what was seen of the spot supply of a member.
type Observation struct {
	// Requirements is the scheduling requirements of the pods that it is for, as text.
	Requirements string
	// Member, and Region, with which it fails; empty: by itself.
	Member, Region string
	// Placements are those that have such pods there, in order.
	Placements []string
	// Capacity is how many of them it runs; [Open]: no limit is known.
	Capacity int
	// At in seconds since 1970.
	At int64
}

// HistoryKey names the file of a shape and a member. A ConfigMap takes it as a key.
func HistoryKey(shape, member string) string {
	sum := sha256.Sum256([]byte(shape))
	if len(member) > 200 { // a name of a file has 255 bytes at most, and a key of a ConfigMap 253
		whole := sha256.Sum256([]byte(member))
		member = member[:180] + "-" + hex.EncodeToString(whole[:6])
	}
	return hex.EncodeToString(sum[:6]) + historyBetween + member + historyFile
}

// ReadHistory reads the files of a history. Files that are none are an error: nothing is overwritten that somebody else may need.
func ReadHistory(files map[string]string) (*History, error) {
	h := &History{zones: map[string]*historyZone{}, gone: map[string]bool{}}
	for name, text := range files {
		zone := &historyZone{}
		if err := json.Unmarshal([]byte(text), &zone.zoneFile); err != nil || len(zone.Changes) == 0 || !strings.HasSuffix(name, historyFile) {
			return nil, fmt.Errorf("%.64q is no history of spot capacity", name)
		}
		h.zones[name] = zone
	}
	return h, nil
}

// Note notes what was seen, and reports whether that is a change. What was seen at an earlier time than the last change counts as seen
// then: clocks are set back, and those of two replicas differ.
func (h *History) Note(o *Observation) bool {
	key := HistoryKey(o.Requirements, o.Member)
	zone := h.zones[key]
	if zone == nil {
		zone = &historyZone{}
		zone.Metadata.Gap, zone.Metadata.Requirements = changeGap, o.Requirements[:min(len(o.Requirements), maxShape)]
		h.zones[key] = zone
		delete(h.gone, key)
	}
	zone.noted, zone.ended = o.At, false
	if h.began == 0 {
		h.began = o.At
	}
	placements := o.Placements[:min(len(o.Placements), maxPlacements)]
	same := zone.Metadata.Region == o.Region && slices.Equal(zone.Metadata.Placements, placements)
	last := Change{At: o.At, Capacity: -1}
	if n := len(zone.Changes); n > 0 {
		last = zone.Changes[n-1]
	}
	switch {
	case last.Capacity != o.Capacity:
		zone.Changes = append(zone.Changes, Change{At: max(o.At, last.At), Capacity: o.Capacity})
	case same:
		return false
	}
	zone.Metadata.Region, zone.Metadata.Placements = o.Region, slices.Clone(placements)
	zone.text, zone.changed = nil, true
	return true
}

// End notes that all members but these run nothing any more, for they are not registered, and reports whether that is a change.
func (h *History) End(registered []string, at int64) (changed bool) {
	stays := map[string]bool{}
	for _, member := range registered {
		_, file, _ := strings.Cut(HistoryKey("", member), historyBetween)
		stays[file] = true
	}
	for name, zone := range h.zones {
		_, file, _ := strings.Cut(name, historyBetween)
		last := zone.Changes[len(zone.Changes)-1]
		if zone.ended = !stays[file]; !zone.ended || last.Capacity == 0 {
			continue
		}
		zone.Changes = append(zone.Changes, Change{At: max(at, last.At), Capacity: 0})
		zone.text, zone.changed, changed = nil, true, true
	}
	return changed
}

// Files returns all files, in at most so many bytes. What is oldest is forgotten for that; see [History.Trim].
func (h *History) Files(limit int) map[string]string {
	h.Trim(limit)
	files := map[string]string{}
	for name, zone := range h.zones {
		files[name] = string(zone.bytes())
	}
	clear(h.gone)
	return files
}

// Changed returns the files that have changed since they were read or it was called last, in so many bytes of all files at most, and the
// names of those that were forgotten.
func (h *History) Changed(limit int) (files map[string][]byte, gone []string) {
	h.Trim(limit)
	files = map[string][]byte{}
	for name, zone := range h.zones {
		if zone.changed {
			files[name], zone.changed = zone.bytes(), false
		}
	}
	gone = slices.Sorted(maps.Keys(h.gone))
	clear(h.gone)
	return files, gone
}

// Trim forgets until all files have at most so many bytes: first files of members that are gone, once nothing has noted them for an hour; then,
// each time, something of the member whose files have the most: what nothing has noted for an hour, or the older half of the longest. So no
// member, however many shapes it shows, pushes out what is known about others.
func (h *History) Trim(limit int) {
	for h.Bytes() > limit && h.forget() {
	}
}

// Bytes is how many all files have, with their names.
func (h *History) Bytes() (size int) {
	for name, zone := range h.zones {
		size += len(name) + len(zone.bytes())
	}
	return size
}

// Entries is how many changes there are, and Dropped how many were forgotten since the history was read.
func (h *History) Entries() (n int) {
	for _, zone := range h.zones {
		n += len(zone.Changes)
	}
	return n
}

// Dropped is how many changes were forgotten since the history was read, for there was no room for them.
func (h *History) Dropped() int { return h.dropped }

// bytes is the file's content.
func (z *historyZone) bytes() []byte {
	if z.text == nil {
		z.text, _ = json.Marshal(&z.zoneFile) // texts and finite numbers can always be written
	}
	return z.text
}

// deadAfter is how many seconds a file may go without being noted, while others are, before nothing is thought to have the shape.
const deadAfter = 3600

// forget drops one file or shortens one; false: there is nothing. See [History.Trim].
func (h *History) forget() bool {
	if len(h.zones) == 0 {
		return false
	}
	all := slices.Sorted(maps.Keys(h.zones))
	ended := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !h.zones[name].ended })
	largest := h.largest(all)
	for _, names := range [][]string{ended, largest} {
		if name, ok := h.dead(names); ok {
			h.drop(name)
			return true
		}
	}
	h.shorten(largest)
	return true
}

// largest returns, of these files, those of the member whose files have the most bytes, in their order.
func (h *History) largest(names []string) []string {
	files, sizes := map[string][]string{}, map[string]int{}
	for _, name := range names {
		_, member, _ := strings.Cut(name, historyBetween)
		files[member], sizes[member] = append(files[member], name), sizes[member]+len(name)+len(h.zones[name].bytes())
	}
	most := ""
	for _, member := range slices.Sorted(maps.Keys(sizes)) {
		if sizes[member] > sizes[most] {
			most = member
		}
	}
	return files[most]
}

// dead is the one of these files that has not been noted for the longest; false: others were noted less than an hour after it. What has not
// been noted since the history was read has an hour from then.
func (h *History) dead(names []string) (name string, ok bool) {
	noted := func(name string) int64 { return max(h.zones[name].noted, h.began) }
	newest := int64(0)
	for name := range h.zones {
		newest = max(newest, noted(name))
	}
	for _, other := range names {
		if name == "" || cmp.Or(cmp.Compare(noted(other), noted(name)), cmp.Compare(h.zones[other].last(), h.zones[name].last())) < 0 {
			name = other
		}
	}
	return name, name != "" && newest-noted(name) > deadAfter
}

// shorten drops the older half of the changes of the longest of these files or, where each has one, the file that changed the longest ago.
func (h *History) shorten(names []string) {
	longest, oldest := names[0], names[0]
	for _, name := range names {
		if len(h.zones[name].Changes) > len(h.zones[longest].Changes) {
			longest = name
		}
		if h.zones[name].last() < h.zones[oldest].last() {
			oldest = name
		}
	}
	zone := h.zones[longest]
	if len(zone.Changes) < 2 {
		h.drop(oldest)
		return
	}
	half := len(zone.Changes) / 2
	h.dropped += half
	zone.Changes, zone.Metadata.Forgotten = slices.Clone(zone.Changes[half:]), true
	zone.text, zone.changed = nil, true
}

// last is when the file changed last.
func (z *historyZone) last() int64 { return z.Changes[len(z.Changes)-1].At }

// drop forgets a file.
func (h *History) drop(name string) {
	h.dropped += len(h.zones[name].Changes)
	delete(h.zones, name)
	h.gone[name] = true
}

// placedIn names a trace by the placements whose pods its zones are for; without any it has another name.
func placedIn(zones []zoneFile, otherwise string) string {
	placements := map[string]bool{}
	for i := range zones {
		for _, name := range zones[i].Metadata.Placements {
			placements[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(placements))
	switch {
	case len(names) == 0:
		return otherwise
	case len(names) > 3:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// readConfigMap reads the history in a ConfigMap, as kubectl writes it: one trace for each shape. Those that are too
// short are left out, if there are others.
func readConfigMap(file string) ([]Trace, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var found struct {
		Kind string            `json:"kind"`
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(text, &found); err != nil || found.Kind != "ConfigMap" || len(found.Data) == 0 {
		return nil, fmt.Errorf("%s: must be a folder, or a ConfigMap with a history", file)
	}
	known, err := ReadHistory(found.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	members, zones := map[string][]string{}, map[string][]zoneFile{}
	for _, name := range slices.Sorted(maps.Keys(known.zones)) {
		shape, member, _ := strings.Cut(name, historyBetween)
		members[shape] = append(members[shape], member)
		zones[shape] = append(zones[shape], known.zones[name].zoneFile)
	}
	var traces []Trace
	var young error
	for _, shape := range slices.Sorted(maps.Keys(members)) {
		switch trace, err := traceOf(shape, members[shape], zones[shape]); {
		case errors.Is(err, errYoung):
			young = fmt.Errorf("%s: %w", file, err)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file, err)
		default:
			traces = append(traces, trace)
		}
	}
	if len(traces) == 0 {
		return nil, young
	}
	return traces, nil
}
