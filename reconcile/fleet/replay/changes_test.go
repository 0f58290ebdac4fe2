package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded reads a folder with these files.
func recorded(t *testing.T, files map[string]string) (Trace, error) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := FindTraces([]string{folder})
	if err != nil {
		return Trace{}, err
	}
	return found[0], nil
}

func TestAHistoryOfChangesIsATrace(t *testing.T) {
	got, err := recorded(t, map[string]string{
		"a": `{"metadata": {"region": "eu"}, "changes": [{"t": 1000, "capacity": 9}, {"t": 1120, "capacity": 3}, {"t": 1130, "capacity": 1}, {"t": 1170, "capacity": 9}]}`,
		"b": `{"metadata": {}, "changes": [{"t": 1060, "capacity": 5}, {"t": 1300, "capacity": 0}]}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Zone{{Name: "a", Region: "eu", Capacity: []int{9, 9, 1, 9, 9}}, {Name: "b", Capacity: []int{0, 5, 5, 5, 5}}}
	if diff := cmp.Diff(want, got.Zones); diff != "" || got.Gap != changeGap {
		t.Errorf("gap %d (-want +got):\n%s", got.Gap, diff)
	}
}

// What a hub learned of a fleet is not cut to what it knows of the member that came last; one whose beginning was forgotten does.
func TestAMemberThatJoinedLaterCutsNoHistory(t *testing.T) {
	const old, young = `"changes": [{"t": 1000, "capacity": 9}, {"t": 1240, "capacity": 3}]`, `"changes": [{"t": 1120, "capacity": 5}]`
	for name, c := range map[string]struct {
		metadata string
		want     [][]int
	}{
		"it was none before":                       {`{}`, [][]int{{9, 9, 9, 9}, {0, 0, 5, 5}}},
		"nobody knows any more what it had before": {`{"forgotten": true}`, [][]int{{9, 9}, {5, 5}}},
	} {
		got, err := recorded(t, map[string]string{"old": `{"metadata": {}, ` + old + `}`, "young": `{"metadata": ` + c.metadata + `, ` + young + `}`})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if diff := cmp.Diff(want, got.Zones[i].Capacity); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, got.Zones[i].Name, diff)
			}
		}
	}
}

func TestABadHistoryIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"changes": [{"t": 9, "capacity": 1}, {"t": 1, "capacity": 2}]}`:                "order",
		`{"changes": [{"t": 9, "capacity": 1}]}`:                                         "nothing to replay yet",
		`{"data": [1], "changes": [{"t": 9, "capacity": 1}, {"t": 999, "capacity": 2}]}`: "one of them",
		`{"changes": [{"t": 9, "capacity": 1}, {"t": 999999999999, "capacity": 2}]}`:     "too long",
	} {
		if _, err := recorded(t, map[string]string{"a": text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
