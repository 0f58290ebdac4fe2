package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/replay"
)

// history is a folder with what a hub recorded of two members.
func history(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"prod-eu": `{"metadata": {"region": "eu"}, "changes": [{"t": 1000, "capacity": 10000}, {"t": 9000, "capacity": 1}, {"t": 20000, "capacity": 10000}]}`,
		"prod-us": `{"metadata": {"region": "us"}, "changes": [{"t": 1000, "capacity": 10000}, {"t": 30000, "capacity": 2}, {"t": 50000, "capacity": 10000}]}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestAHistoryIsReplayed(t *testing.T) {
	folder := history(t)
	table := plimsoll(t, nil, "replay", folder, "--replicas", "6", "--start", "3m", "--notice", "0s")
	if table.code != exitOK || !strings.Contains(table.out, "6 replicas, start 180 s, notice 0 s") || !strings.Contains(table.out, replay.Ours) {
		t.Errorf("%+v", table)
	}
	asJSON := plimsoll(t, nil, "replay", folder, "-o", "json", "--price-ratio", "2")
	var rows []replay.Row
	if err := json.Unmarshal([]byte(asJSON.out), &rows); err != nil || len(rows) < 5 || rows[0].Policy != replay.Ours || rows[0].Setting.Ratio != 2 {
		t.Fatalf("%v: %+v", err, asJSON)
	}
	if rows[0].Available < 0.9 || rows[0].Cost <= 0.4 || rows[0].Cost >= 1 || rows[0].Evictions == 0 {
		t.Errorf("%+v", rows[0])
	}
}

func TestWhatCannotBeReplayedIsRefused(t *testing.T) {
	folder := history(t)
	for args, want := range map[string]string{
		"replay": "missing: FOLDER or FILE", "replay " + t.TempDir(): "no folder with traces", "replay " + folder + " --replicas 0": "--replicas 0",
		"replay " + folder + " --start 100ms": "--start 100ms", "replay " + folder + " --notice -1s": "--notice -1s",
		"replay " + folder + " --price-ratio NaN": "--price-ratio NaN", "replay " + folder + " -o yaml": `-o "yaml"`,
	} {
		if got := plimsoll(t, nil, strings.Fields(args)...); got.code == exitOK || !strings.Contains(got.err, want) {
			t.Errorf("plimsoll %s: %+v, want an error with %q", args, got, want)
		}
	}
}
