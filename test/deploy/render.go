package deploy

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Namespace is the one that everything is rendered for.
const Namespace = "plimsoll-system"

// root is the repository's, from here.
var root = filepath.Join("..", "..")

// Values are those of the chart, over its own.
type Values map[string]any

func loadChart() (*chart.Chart, error) {
	return loader.Load(filepath.Join(root, "deploy", "chart", "plimsoll"))
}

// RenderChart returns the text of each template by its name, such as rbac.yaml. Values that the chart's schema refuses are
// an error.
func RenderChart(values Values) (map[string]string, error) { return renderChart(values, ".yaml") }

// RenderNotes returns what Helm says after an installation.
func RenderNotes(values Values) (string, error) {
	files, err := renderChart(values, "NOTES.txt")
	return files["NOTES.txt"], err
}

// renderChart returns the templates whose names end so, for a cluster that serves these kinds beside Kubernetes' own.
func renderChart(values Values, ending string, serves ...string) (map[string]string, error) {
	release := chartutil.ReleaseOptions{Name: "plimsoll", Namespace: Namespace, IsInstall: true, Revision: 1}
	return renderRelease(release, values, ending, serves...)
}

func renderRelease(release chartutil.ReleaseOptions, values Values, ending string, serves ...string) (map[string]string, error) {
	loaded, err := loadChart()
	if err != nil {
		return nil, err
	}
	cluster := chartutil.DefaultCapabilities.Copy()
	cluster.APIVersions = append(slices.Clone(cluster.APIVersions), serves...)
	all, err := chartutil.ToRenderValues(loaded, values, release, cluster)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, text := range rendered {
		if strings.TrimSpace(text) != "" && strings.HasSuffix(name, ending) {
			files[path.Base(name)] = text
		}
	}
	return files, nil
}

// RenderKustomization builds a folder below deploy/, as `kubectl apply -k` would.
func RenderKustomization(folder ...string) ([]byte, error) {
	dir := filepath.Join(append([]string{root, "deploy"}, folder...)...)
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("kustomize %s: %w", dir, err)
	}
	return built.AsYaml()
}
