package deploy

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// chartFiles are the templates that are as they are by default in the kustomize base, and those that a component has.
var (
	ofTheBase     = []string{"deployment.yaml", "disruption.yaml", "networkpolicy.yaml", "rbac.yaml", "registrations.yaml", "services.yaml", "state.yaml", "users.yaml"}
	monitored     = "metrics: {serviceMonitor: {enabled: true}, rules: {enabled: true}}"
	overFleet     = "config: {fleet: {enabled: true}}"
	byCertManager = "webhook: {certificate: {secretName: plimsoll-webhook, issuerRef: {name: plimsoll}}}"
)

// plain takes away the lines of a rendered template that only a release has.
var plain = regexp.MustCompile(`(?m)^ *(app\.kubernetes\.io/(managed-by|instance|version)|helm\.sh/chart|plimsoll\.dev/config-sha256):.*\n` +
	`|^ *# The hub reads its configuration once\.\n` +
	`|^  annotations:\n    helm\.sh/resource-policy: keep\n|^    helm\.sh/resource-policy: keep\n|^      annotations:\n(      *#.*\n)*(      *plimsoll\.dev/config-sha256:.*\n)`)

// The base is made from the chart, comments included, so that there is one place to change it.
func TestTheKustomizeBaseIsWhatTheChartSays(t *testing.T) {
	for folder, values := range map[string]string{"base": "", "components/monitoring": monitored, "components/fleet": overFleet} {
		var parsed Values
		if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
			t.Fatal(err)
		}
		files, err := RenderChart(parsed)
		if err != nil {
			t.Fatal(err)
		}
		names := ofTheBase
		if folder != "base" {
			names = []string{path.Base(folder) + ".yaml"}
		}
		for _, name := range names {
			want := "# Generated from deploy/chart/plimsoll/templates/" + name + ": make manifests\n" +
				strings.TrimLeft(plain.ReplaceAllString(files[name], ""), "\n")
			golden(t, filepath.Join(root, "deploy", "kustomize", filepath.FromSlash(folder), name), want)
		}
	}
}

// suffix of the ConfigMap's name follows from its content: where the chart has an annotation, so that a change replaces the pods.
var suffix = regexp.MustCompile(`plimsoll-config-[a-z0-9]{10}\b`)

func TestHelmAndKustomizeRenderTheSameObjects(t *testing.T) {
	for folder, values := range map[string]string{
		"kustomize/base":                 "",
		"kustomize/testdata/monitored":   monitored,
		"kustomize/testdata/certificate": byCertManager,
		"kustomize/testdata/fleet":       overFleet,
		"kustomize/testdata/moving":      "registrations: {inReleaseNamespace: true}",
	} {
		t.Run(folder, func(t *testing.T) {
			text, err := RenderKustomization(strings.Split(folder, "/")...)
			if err != nil {
				t.Fatal(err)
			}
			built, err := Parse(suffix.ReplaceAllString(string(text), "plimsoll-config"))
			if err != nil {
				t.Fatal(err)
			}
			rendered := render(t, values).WithoutHelm()
			if diff := cmp.Diff(rendered.Contents(), built.WithoutHelm().Contents()); diff != "" {
				t.Errorf("-chart +kustomize:\n%s", diff)
			}
		})
	}
}
