package deploy

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// The containers of test/e2e read these files, so that Helm's packages stay in this module.
func TestWhatTheContainersRunWithIsWhatTheChartSays(t *testing.T) {
	folder := filepath.Join(root, "test", "e2e", "chart")
	for _, name := range []string{"install", "upgrade"} {
		values, err := os.ReadFile(filepath.Join(folder, name+".values.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		objects := render(t, string(values)).WithoutHelm()
		want := "# Made from the chart and " + name + ".values.yaml: make manifests\n"
		for i, key := range []string{"ConfigMap " + Namespace + "/plimsoll-config", "Deployment " + Namespace + "/plimsoll-hub"} {
			text, err := yaml.Marshal(objects[key])
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				want += "---\n"
			}
			want += string(text)
		}
		golden(t, filepath.Join(folder, name+".yaml"), want)
	}
}
