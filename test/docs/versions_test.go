package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named are the versions that pages name: of Go, of Kubernetes and of Helm. A version of Kubernetes with a patch is one that was run.
var named = map[string]*regexp.Regexp{
	"Go":                 regexp.MustCompile(`\bGo (1\.\d+(?:\.\d+)?)`),
	"Kubernetes":         regexp.MustCompile(`(?:\bKubernetes |\| member \| )(1\.\d+(?:\.\d+)?)`),
	"Kubernetes' server": regexp.MustCompile(`\bv?(1\.3\d\.\d+)\b`),
	"Helm":               regexp.MustCompile(`\bHelm (?:\| )?(3\.\d+)`),
}

// The versions that pages name are those of go.mod, of the chart and of the testbed.
func TestThePagesNameTheVersionsThatAreNeededAndTested(t *testing.T) {
	needed := map[string]string{
		"Go":                 fromFile(t, `(?m)^go (\S+)$`, "go.mod"),
		"Kubernetes":         fromFile(t, `(?m)^kubeVersion: ">=(\d+\.\d+)\.0-0"$`, "deploy", "chart", "plimsoll", "Chart.yaml"),
		"Kubernetes' server": fromFile(t, `(?m)^\tk8s.io/kubernetes v(\S+)$`, "test", "kube", "controlplane", "go.mod"),
		"Helm":               fromFile(t, `(?m)^\| Helm \| (\d+\.\d+) and later`, "docs", "operate.md"), // of the flag that pages use
	}
	found := map[string]int{}
	for _, page := range pagesWithVersions(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for of, pattern := range named {
			for _, match := range pattern.FindAllStringSubmatch(string(text), -1) {
				version, want := match[1], needed[of]
				if of == "Kubernetes" && strings.Count(version, ".") == 2 {
					continue // of the server's, below
				}
				found[of]++
				if version != want && (of != "Go" || !strings.HasPrefix(want, version+".")) {
					t.Errorf("%s names %s %s, and it is %s", page, of, version, want)
				}
			}
		}
	}
	for of, least := range map[string]int{"Go": 2, "Kubernetes": 5, "Kubernetes' server": 5, "Helm": 3} {
		if found[of] < least {
			t.Errorf("%d versions of %s found in pages, want at least %d", found[of], of, least)
		}
	}
}

// The table of compatibility names the versions that the tests run with.
func TestTheTableOfCompatibilityNamesWhatIsRun(t *testing.T) {
	kubernetes := fromFile(t, `(?m)^\tk8s.io/kubernetes v(\S+)$`, "test", "kube", "controlplane", "go.mod")
	helm := fromFile(t, `(?m)^\thelm.sh/helm/v3 v(\d+\.\d+)\.\d+$`, "test", "deploy", "go.mod")
	for row, want := range map[string]string{"hub cluster": kubernetes, "member": kubernetes, "Helm": helm} {
		if tested := fromFile(t, `(?m)^\| `+row+` \|.*\| (\d+(?:\.\d+)+)(?:,[^|]*)? \|$`, "docs", "operate.md"); tested != want {
			t.Errorf("docs/operate.md says of %s that it is tested with %s, and the tests run %s", row, tested, want)
		}
	}
	if built := fromFile(t, `(?m)^version=v(\S+)$`, "test", "kube", "controlplane", "build.sh"); built != kubernetes {
		t.Errorf("the testbed calls itself %s, and is %s", built, kubernetes)
	}
}

// pagesWithVersions are the pages for users. Decisions and benchmarks are of the time when they were written.
func pagesWithVersions(t *testing.T) (pages []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", filepath.Join("docs", "*.md"), filepath.Join("deploy", "*", "README.md"), filepath.Join("deploy", "chart", "*", "README.md")} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range found {
			if name := filepath.Base(page); name != "benchmarks.md" && name != "CHANGELOG.md" {
				pages = append(pages, page)
			}
		}
	}
	return pages
}

// fromFile is what a pattern finds in a file, which has to have it.
func fromFile(t *testing.T, pattern string, path ...string) string {
	t.Helper()
	file := filepath.Join(append([]string{root}, path...)...)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
	if match == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	return match[1]
}
