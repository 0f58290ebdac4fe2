package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// MaxHistory bounds a history in bytes: a ConfigMap holds 1 MiB, with its metadata.
const MaxHistory = 512 << 10

// historyFile ends the names of files; historyBetween is between what was placed and where, and in no name of Kubernetes.
const historyFile, historyBetween = ".json", "_"

// History is what was seen of the supply of members, by what was placed there, as changes: each file of it is a zone that
// [FindTraces] reads. It is not safe for concurrent use.
type History struct {
	zones map[string]*zoneFile
}

// HistoryKey names the file of what was placed in a member.
func HistoryKey(placed, member string) string {
	return strings.ReplaceAll(placed, "/", ".") + historyBetween + member + historyFile
}

// ReadHistory reads the files of a history. Files that are none are an error: nothing is overwritten that somebody else may need.
func ReadHistory(files map[string]string) (*History, error) {
	h := &History{zones: map[string]*zoneFile{}}
	for name, text := range files {
		zone := &zoneFile{}
		if err := json.Unmarshal([]byte(text), zone); err != nil || len(zone.Changes) == 0 || !strings.HasSuffix(name, historyFile) {
			return nil, fmt.Errorf("%.64q is no history of spot capacity", name)
		}
		h.zones[name] = zone
	}
	return h, nil
}

// Note notes the capacity of a file from a moment on, and tells whether that is a change. Times do not go backwards.
func (h *History) Note(key, region string, capacity int, at int64) bool {
	zone := h.zones[key]
	if zone == nil {
		zone = &zoneFile{}
		zone.Metadata.Gap = changeGap
		h.zones[key] = zone
	}
	zone.Metadata.Region = region
	if n := len(zone.Changes); n > 0 && zone.Changes[n-1].Capacity == capacity {
		return false
	}
	zone.Changes = append(zone.Changes, Change{At: at, Capacity: capacity})
	return true
}

// Files returns the files, in at most so many bytes. What is oldest is forgotten for that, and of each file at least half stays.
func (h *History) Files(limit int) (map[string]string, error) {
	for {
		files, size := map[string]string{}, 0
		for name, zone := range h.zones {
			text, err := json.Marshal(zone)
			if err != nil {
				return nil, err
			}
			files[name] = string(text)
			size += len(name) + len(text)
		}
		if size <= limit || !h.forget() {
			return files, nil
		}
	}
}

// forget drops the older half of the changes of the longest file, or the file that changed the longest ago; false: there is nothing.
func (h *History) forget() bool {
	if len(h.zones) == 0 {
		return false
	}
	names := slices.Sorted(maps.Keys(h.zones))
	longest, oldest := names[0], names[0]
	last := func(name string) int64 { all := h.zones[name].Changes; return all[len(all)-1].At }
	for _, name := range names {
		if len(h.zones[name].Changes) > len(h.zones[longest].Changes) {
			longest = name
		}
		if last(name) < last(oldest) {
			oldest = name
		}
	}
	if n := len(h.zones[longest].Changes); n > 1 {
		h.zones[longest].Changes = slices.Clone(h.zones[longest].Changes[n/2:])
		return true
	}
	delete(h.zones, oldest)
	return true
}

// readConfigMap reads the history in a ConfigMap, as kubectl writes it: one trace for each FleetPlacement.
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
		placed, member, _ := strings.Cut(name, historyBetween)
		members[placed] = append(members[placed], member)
		zones[placed] = append(zones[placed], *known.zones[name])
	}
	var traces []Trace
	for _, placed := range slices.Sorted(maps.Keys(members)) {
		trace, err := traceOf(placed, members[placed], zones[placed])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		traces = append(traces, trace)
	}
	return traces, nil
}
