package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestAHistoryIsWrittenReadAndReplayed(t *testing.T) {
	h, err := ReadHistory(nil)
	if err != nil {
		t.Fatal(err)
	}
	for at, capacity := range map[int64]int{0: Open} {
		for _, member := range []string{"eu", "us"} {
			if !h.Note(HistoryKey("shop/web", member), "region-"+member, capacity, at) {
				t.Error("the first is no change")
			}
		}
	}
	key := HistoryKey("shop/web", "eu")
	if h.Note(key, "region-eu", Open, 500) {
		t.Error("the same capacity is a change")
	}
	if !h.Note(key, "region-eu", 1, 6000) || !h.Note(key, "region-eu", Open, 12000) {
		t.Error("another capacity is no change")
	}
	files, err := h.Files(MaxHistory)
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	again, err := ReadHistory(files)
	if err != nil {
		t.Fatal(err)
	}
	if again.Note(key, "region-eu", Open, 99999) { // after a restart nothing is to be written
		t.Error("what was read is another than what was written")
	}
	bare := map[string]string{}
	for name, text := range files {
		bare[name[:len(name)-len(historyFile)]] = text
	}
	trace, err := recorded(t, bare)
	if err != nil || len(trace.Zones) != 2 || trace.Samples() != 200 || trace.Zones[0].Region != "region-eu" || trace.Zones[0].Capacity[100] != 1 {
		t.Errorf("%v, %v", trace, err)
	}
	manifest, err := yaml.Marshal(map[string]any{"kind": "ConfigMap", "data": files})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "history.yaml")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := FindTraces([]string{file}); err != nil || len(found) != 1 || found[0].Name != "shop.web" || found[0].Zones[1].Name != "us" || found[0].Samples() != 200 {
		t.Errorf("of the ConfigMap: %v, %v", found, err)
	}
	if _, err := ReadHistory(map[string]string{"config.yaml": "a: b"}); err == nil {
		t.Error("somebody else's ConfigMap was taken for a history")
	}
}

func TestAHistoryIsBounded(t *testing.T) {
	h, _ := ReadHistory(nil)
	for at := range int64(20_000) {
		h.Note(HistoryKey("shop/web", fmt.Sprint("member-", at%7)), "", int(at%13), at)
	}
	files, err := h.Files(8 << 10)
	size := 0
	for name, text := range files {
		size += len(name) + len(text)
	}
	if err != nil || size > 8<<10 || len(files) != 7 {
		t.Errorf("%d bytes in %d files, %v", size, len(files), err)
	}
	if _, err := ReadHistory(files); err != nil {
		t.Error(err)
	}
}
