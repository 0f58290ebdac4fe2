package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const spotalis = `
operator: {namespace: spotalis-system, readOnlyMode: true, disruptionWindow: {schedule: "0 2 * * *"}}
controllers:
  nodeClassifier:
    spotLabels: [{matchLabels: {karpenter.sh/capacity-type: spot}}]
  workers: 3
webhook: {enabled: true, port: 9443}
observability: {health: {}}
`

func TestAFileOfThePredecessorIsRefusedWithWhatTakesThePlaceOfEachKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(spotalis), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(file, nil)
	if err == nil {
		t.Fatal("it was taken")
	}
	want := []string{
		": operator.namespace: \"spotalis-system\": a key of Spotalis; instead of it: hub.namespace (docs/migrate.md)",
		": operator.readOnlyMode: true: a key of Spotalis; instead of it: spot.readOnly (docs/migrate.md)",
		": operator.disruptionWindow.schedule: \"0 2 * * *\": a key of Spotalis; instead of it: spot.defaults.disruptionSchedule (docs/migrate.md)",
		": controllers.nodeClassifier.spotLabels: (a list): a key of Spotalis; instead of it: spot.nodeLabels, with the values under spot (docs/migrate.md)",
		": controllers.workers: 3: unknown key, below a key of Spotalis (docs/migrate.md)",
		": webhook.enabled: true: a key of Spotalis; instead of it: nothing: a member has no webhook until plimsoll register creates its configuration (docs/migrate.md)",
		": observability.health: (a section): a section of Spotalis (docs/migrate.md)",
	}
	got := strings.Split(strings.ReplaceAll(err.Error(), file, ""), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTheTableOfThePredecessorsKeysIsInTheDocuments(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", predecessorPage))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, known := range predecessorKeys {
		rows = append(rows, "| `"+known.key+"` | "+known.here+" |")
	}
	if !strings.Contains(string(text), "|---|---|\n"+strings.Join(rows, "\n")+"\n") {
		t.Errorf("%s has not these rows:\n%s", predecessorPage, strings.Join(rows, "\n"))
	}
	known := Leaves()
	for _, row := range predecessorKeys {
		if named, ok := strings.CutPrefix(row.here, "`"); ok {
			key, _, _ := strings.Cut(named, "`")
			if !slices.ContainsFunc(known, func(l Leaf) bool { return l.Path == key }) {
				t.Errorf("%s: there is no key %s", row.key, key)
			}
		}
	}
}
