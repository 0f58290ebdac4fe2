package replay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// observed is an observation of pods of a shape in a member.
func observed(shape, member string, capacity int, at int64) *Observation {
	return &Observation{Requirements: shape, Member: member, Region: "region-" + member, Placements: []string{"shop/web"}, Capacity: capacity, At: at}
}

// newHistory is an empty one.
func newHistory(t *testing.T) *History {
	t.Helper()
	h, err := ReadHistory(nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ofTwoMembers has a drought in one of them.
func ofTwoMembers(t *testing.T) *History {
	t.Helper()
	h := newHistory(t)
	for _, member := range []string{"eu", "us"} {
		if !h.Note(observed("small", member, Open, 0)) {
			t.Error("the first is no change")
		}
	}
	if h.Note(observed("small", "eu", Open, 500)) {
		t.Error("the same capacity is a change")
	}
	if !h.Note(observed("small", "eu", 1, 6000)) || !h.Note(observed("small", "eu", Open, 12000)) {
		t.Error("another capacity is no change")
	}
	return h
}

// isTheDrought checks what [ofTwoMembers] is replayed as.
func isTheDrought(t *testing.T, traces []Trace, err error) {
	t.Helper()
	if err != nil || len(traces) != 1 {
		t.Fatalf("%d traces, %v", len(traces), err)
	}
	trace := traces[0]
	if len(trace.Zones) != 2 || trace.Samples() != 200 || trace.Zones[0].Region != "region-eu" || trace.Zones[0].Capacity[100] != 1 ||
		trace.Name != "shop/web" || trace.Zones[0].Name != "eu" || trace.Zones[1].Name != "us" {
		t.Errorf("%s: %v", trace.Name, trace.Zones)
	}
}

func TestAHistoryIsWrittenReadAndReplayed(t *testing.T) {
	files := ofTwoMembers(t).Files(MaxHistory)
	if len(files) != 2 {
		t.Fatalf("%v", files)
	}
	again, err := ReadHistory(files)
	if err != nil {
		t.Fatal(err)
	}
	if again.Note(observed("small", "eu", Open, 99999)) { // after a restart nothing is to be written
		t.Error("what was read is another than what was written")
	}
	moved := observed("small", "eu", Open, 99999)
	moved.Placements = []string{"shop/cart", "shop/web"}
	if !again.Note(moved) || again.Entries() != 4 {
		t.Errorf("another placement: %d entries", again.Entries())
	}
	traces, err := FindTraces([]string{configMap(t, files)})
	isTheDrought(t, traces, err)
	if _, err := ReadHistory(map[string]string{"config.yaml": "a: b"}); err == nil {
		t.Error("somebody else's ConfigMap was taken for a history")
	}
}

// configMap is a file as kubectl writes it.
func configMap(t *testing.T, files map[string]string) string {
	t.Helper()
	manifest, err := yaml.Marshal(map[string]any{"kind": "ConfigMap", "data": files})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "history.yaml")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAShapeThatIsTooYoungKeepsNoOtherFromBeingReplayed(t *testing.T) {
	h := ofTwoMembers(t)
	h.Note(observed("large", "eu", Open, 12000))
	traces, err := FindTraces([]string{configMap(t, h.Files(MaxHistory))})
	isTheDrought(t, traces, err)
	dir := Folder{Path: t.TempDir()}
	if err := dir.Write(h); err != nil {
		t.Fatal(err)
	}
	traces, err = FindTraces([]string{dir.Path})
	isTheDrought(t, traces, err)
	young := newHistory(t)
	young.Note(observed("large", "eu", Open, 12000))
	if _, err := FindTraces([]string{configMap(t, young.Files(MaxHistory))}); !errors.Is(err, errYoung) {
		t.Error(err)
	}
}

func TestAHistoryIsBounded(t *testing.T) {
	h := newHistory(t)
	for at := range int64(20_000) {
		h.Note(observed("small", fmt.Sprint("member-", at%7), int(at%13), at))
	}
	files, size := h.Files(8<<10), 0
	for name, text := range files {
		size += len(name) + len(text)
	}
	if size > 8<<10 || size != h.Bytes() || len(files) != 7 || h.Entries()+h.Dropped() != 20_000 {
		t.Errorf("%d bytes in %d files, of which %d are counted; %d entries, %d dropped", size, len(files), h.Bytes(), h.Entries(), h.Dropped())
	}
	if _, err := ReadHistory(files); err != nil {
		t.Error(err)
	}
}

// Some autoscalers change what pods request, and each change is another shape.
func TestShapesThatNothingHasAnyMoreAreForgottenFirst(t *testing.T) {
	h := newHistory(t)
	for hour := range int64(200) {
		h.Note(observed("lasting", "eu", int(hour%3), hour*3600))
		h.Note(observed(fmt.Sprint("shape-", hour), "eu", Open, hour*3600))
		h.Trim(8 << 10)
	}
	files, lasting := h.Files(8<<10), HistoryKey("lasting", "eu")
	if n := len(h.zones[lasting].Changes); n != 200 || h.Bytes() > 8<<10 || len(files) < 2 {
		t.Errorf("%d of 200 changes are left, and %d files", n, len(files))
	}
}

// A member says itself what its pods ask for.
func TestAMemberOfManyShapesPushesOutNothingOfOthers(t *testing.T) {
	h := newHistory(t)
	for at := range int64(20) {
		for _, member := range []string{"eu", "us"} {
			h.Note(observed("small", member, int(at), at*100))
		}
	}
	for at := range int64(1000) {
		h.Note(observed(fmt.Sprint("shape-", at), "hostile", Open, 2000+at))
		h.Note(observed(fmt.Sprint("shape-", at), "hostile", int(at), 2000+at))
	}
	files := h.Files(16 << 10)
	for _, member := range []string{"eu", "us"} {
		if zone := h.zones[HistoryKey("small", member)]; zone == nil || len(zone.Changes) != 20 {
			t.Errorf("of %s is left: %+v", member, zone)
		}
	}
	if h.Bytes() > 16<<10 || len(files) < 10 {
		t.Errorf("%d bytes in %d files", h.Bytes(), len(files))
	}
}

// Clusters may have new names with each generation.
func TestMembersThatAreGoneAreForgottenBeforeOthersLoseAnything(t *testing.T) {
	h := newHistory(t)
	const generations = 40
	var at int64
	for generation := range int64(generations) {
		name := fmt.Sprint("blue-", generation)
		for range int64(20) {
			at += 1000
			h.Note(observed("lasting", "eu", int(at/1000%3), at))
			h.Note(observed("of its own", name, int(at/1000), at))
		}
		at += 1000
		h.Note(observed("lasting", "eu", int(at/1000%3), at))
		h.End([]string{"eu"}, at)
		h.Trim(48 << 10)
	}
	if zone := h.zones[HistoryKey("lasting", "eu")]; zone == nil || len(zone.Changes) != generations*21 || zone.Metadata.Forgotten {
		t.Errorf("of the member that is there is left: %+v", zone)
	}
	if newest := h.zones[HistoryKey("of its own", fmt.Sprint("blue-", generations-1))]; newest == nil {
		t.Error("the member that has just gone is forgotten")
	}
	if h.Bytes() > 48<<10 || len(h.zones) < 3 || len(h.zones) >= generations {
		t.Errorf("%d bytes in %d files", h.Bytes(), len(h.zones))
	}
}

func TestAKeyIsOneThatAConfigMapTakes(t *testing.T) {
	long := strings.Repeat("a", 253)
	one, other := HistoryKey(`{"cpu":500}`, long), HistoryKey(`{"cpu":500}`, long[:252]+"b")
	if len(one) > 253 || one == other || len(one)+len(unfinished) > 255 {
		t.Errorf("%s, %s", one, other)
	}
}

func TestAHistoryIsKeptInFiles(t *testing.T) {
	dir := Folder{Path: t.TempDir()}
	theirs := filepath.Join(dir.Path, "lost+found")
	if err := os.Mkdir(theirs, 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := dir.Read()
	if err != nil {
		t.Fatal(err)
	}
	h.Note(observed("small", "eu", Open, 0))
	h.Note(observed("small", "us", Open, 0))
	if err := dir.Write(h); err != nil {
		t.Fatal(err)
	}
	path := func(member string) string {
		return filepath.Join(dir.Path, strings.Replace(HistoryKey("small", member), historyBetween, "/", 1))
	}
	untouched, err := os.Stat(path("us"))
	if err != nil {
		t.Fatal(err)
	}
	// A process ended while it wrote.
	if err := os.WriteFile(path("eu")+unfinished, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err = dir.Read(); err != nil || h.Entries() != 2 {
		t.Fatalf("%v", err)
	}
	h.Note(observed("small", "eu", 1, 6000))
	h.Note(observed("small", "eu", Open, 12000))
	if err := dir.Write(h); err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(path("us")); err != nil || !os.SameFile(untouched, now) {
		t.Errorf("a file that has not changed was written: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir.Path, "*", "*"+unfinished)); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	traces, err := FindTraces([]string{dir.Path})
	isTheDrought(t, traces, err)
	if _, err := os.Stat(theirs); err != nil {
		t.Error(err)
	}
}

func TestFilesThatAreForgottenAreRemoved(t *testing.T) {
	dir := Folder{Path: t.TempDir()}
	h := newHistory(t)
	h.Note(observed("old", "eu", Open, 1))
	if err := dir.Write(h); err != nil {
		t.Fatal(err)
	}
	for i := range int64(MaxHistoryFiles / 25) { // as many changes as there is room for, and some
		h.Note(observed("new", "eu", int(i%2), 10_000+i))
	}
	if err := dir.Write(h); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir.Path, HistoryKey("old", "eu")[:12])); !os.IsNotExist(err) {
		t.Errorf("the oldest is there: %v", err)
	}
	again, err := dir.Read()
	if err != nil || h.Dropped() == 0 || again.Bytes() != h.Bytes() || again.Bytes() > MaxHistoryFiles {
		t.Errorf("%d dropped, %v", h.Dropped(), err)
	}
}

// What was recorded is replayed although the clock of the replica that writes now is behind that of the one before it.
func TestAClockThatIsBehindSpoilsNoHistory(t *testing.T) {
	h, err := ReadHistory(ofTwoMembers(t).Files(MaxHistory))
	if err != nil {
		t.Fatal(err)
	}
	h.Note(observed("small", "eu", 3, 11_990)) // the last change was at 12,000
	traces, err := FindTraces([]string{configMap(t, h.Files(MaxHistory))})
	isTheDrought(t, traces, err)
}

func TestOneShapeTakesNoRoomFromOthers(t *testing.T) {
	h := newHistory(t)
	for i := range int64(100) {
		h.Note(observed("small", "eu", int(i%3), 1+i))
	}
	for i := range int64(20) { // what a pod may ask for has no such bound
		h.Note(observed(fmt.Sprint(i)+strings.Repeat("x", 60_000), "eu", Open, 200+i))
	}
	if h.Files(MaxHistory); h.Dropped() > 0 {
		t.Errorf("%d changes were forgotten", h.Dropped())
	}
}

// A FleetPlacement that is paused while a hub starts is not observed, and what is known about its shape is not forgotten for that.
func TestWhatAStartDoesNotShowAtOnceIsNotForgottenFirst(t *testing.T) {
	h, began := newHistory(t), int64(1_000_000)
	h.Note(observed("paused", "eu", Open, began))
	for i := range int64(400) {
		h.Note(observed("small", "eu", int(i%3), began+1+i))
	}
	h, err := ReadHistory(h.Files(MaxHistory))
	if err != nil {
		t.Fatal(err)
	}
	h.Note(observed("small", "eu", Open, began+1000))
	files := h.Files(8 << 10)
	if _, there := files[HistoryKey("paused", "eu")]; !there || h.Dropped() == 0 {
		t.Errorf("%d are left, %d dropped", len(files), h.Dropped())
	}
	h.Note(observed("small", "eu", 1, began+1000+deadAfter))
	h.Note(observed("small", "eu", 2, began+1001+deadAfter))
	if files = h.Files(h.Bytes() - 1); files[HistoryKey("paused", "eu")] != "" {
		t.Error("it is left after an hour")
	}
	if len(h.gone) > 0 {
		t.Errorf("%v is remembered for nobody", h.gone)
	}
}

func TestSomebodyElsesFilesAreNoHistory(t *testing.T) {
	dir := Folder{Path: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(dir.Path, "0123456789ab"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir.Path, "0123456789ab", "a.json"), []byte(`{"a": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Read(); err == nil {
		t.Error("they were taken for one")
	}
	if _, err := (Folder{Path: filepath.Join(dir.Path, "nowhere")}).Read(); !os.IsNotExist(err) {
		t.Error(err)
	}
}
