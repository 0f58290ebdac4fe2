package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// The table of the chart's README is made from the comments of values.yaml.
func TestTheTableOfValuesIsWhatTheChartHas(t *testing.T) {
	folder := filepath.Join(root, "deploy", "chart", "plimsoll")
	text, err := os.ReadFile(filepath.Join(folder, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := yaml.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	rows := valueRows("", parsed.YNode())
	if len(rows) < 80 {
		t.Fatalf("%d rows: a part of the values is missing", len(rows))
	}
	readme := filepath.Join(folder, "README.md")
	committed, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- values -->\n", "<!-- end of values -->"
	before, rest, found := strings.Cut(string(committed), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", readme)
	}
	golden(t, readme, before+begin+"| value | default | |\n|---|---|---|\n"+strings.Join(rows, "")+end+after)
}

// valueRows are the rows of a map: one for each value, and for each group that has a comment.
func valueRows(prefix string, values *yaml.Node) (rows []string) {
	for i := 0; i+1 < len(values.Content); i += 2 {
		key, value := values.Content[i], values.Content[i+1]
		path := strings.TrimPrefix(prefix+"."+key.Value, ".")
		says := sentence(key.HeadComment, key.LineComment, value.LineComment)
		if value.Kind == yaml.MappingNode && len(value.Content) > 0 && path != "config" {
			if says != "" {
				rows = append(rows, fmt.Sprintf("| `%s` | | %s |\n", path, says))
			}
			rows = append(rows, valueRows(path, value)...)
			continue
		}
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |\n", path, inLine(value), says))
	}
	return rows
}

// sentence is what comments say, without the examples, which a table has no room for.
func sentence(comments ...string) string {
	var said []string
	for _, comment := range comments {
		for line := range strings.Lines(comment) {
			line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
			if line == "" {
				break // an example follows
			}
			said = append(said, line)
		}
	}
	text := strings.Join(said, " ")
	if at := strings.Index(text, "For instance"); at >= 0 {
		text = strings.TrimSpace(text[:at])
	}
	return strings.ReplaceAll(text, "|", `\|`)
}

// inLine is a value in one line, without its comments.
func inLine(value *yaml.Node) string {
	var plain any
	if err := value.Decode(&plain); err != nil {
		return err.Error()
	}
	if text, isText := plain.(string); isText {
		return `"` + text + `"`
	}
	text, err := yaml.Marshal(plain)
	if err != nil {
		return err.Error()
	}
	flow, err := yaml.Parse(string(text))
	if err != nil {
		return err.Error()
	}
	for _, node := range append([]*yaml.Node{flow.YNode()}, flow.YNode().Content...) {
		node.Style = yaml.FlowStyle
	}
	return strings.Join(strings.Fields(flow.MustString()), " ")
}

// What is pushed to a registry is a package: it has to render as the folder does, and to carry what the README links to.
func TestTheChartIsPackagedWhole(t *testing.T) {
	act := action.NewPackage()
	act.Destination = t.TempDir()
	file, err := act.Run(filepath.Join(root, "deploy", "chart", "plimsoll"), nil)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := loader.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := loadChart()
	if err != nil {
		t.Fatal(err)
	}
	contents := func(files ...string) map[string]bool {
		all := map[string]bool{}
		for _, name := range files {
			all[name] = true
		}
		return all
	}
	var inPackage, inFolder []string
	for _, one := range packed.Raw {
		inPackage = append(inPackage, one.Name)
	}
	for _, one := range folder.Raw {
		inFolder = append(inFolder, one.Name)
	}
	if diff := cmp.Diff(contents(inFolder...), contents(inPackage...)); diff != "" {
		t.Errorf("-folder +package:\n%s", diff)
	}
	for version, taken := range map[string]bool{"v1.29.9": false, "v1.30.0": true, "v1.30.4-eks-a737599": true, "v1.36.1-gke.1": true} {
		if chartutil.IsCompatibleRange(packed.Metadata.KubeVersion, version) != taken {
			t.Errorf("Kubernetes %s is taken: %v", version, !taken)
		}
	}
	if packed.Metadata.Icon == "" || !contents(inPackage...)["icon.svg"] || !contents(inPackage...)["README.md"] {
		t.Errorf("the package has icon %q and files %v", packed.Metadata.Icon, inPackage)
	}
}
