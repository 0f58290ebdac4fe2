package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheSBOMNamesEveryModuleThatIsLinkedIn compares what the hub's binary says of itself with what go list finds.
func TestTheSBOMNamesEveryModuleThatIsLinkedIn(t *testing.T) {
	binary, err := filepath.Abs(filepath.Join(root, "build", "bin", "plimsoll-hub"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("run `make build` before: %v", err)
	}
	file := filepath.Join(t.TempDir(), "sbom.json")
	goIn(t, filepath.Join(root, "tools", "sbom"), "run", ".", binary, file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var sbom struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct {
			Name, Version, PURL string
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &sbom); err != nil || sbom.BOMFormat != "CycloneDX" {
		t.Fatalf("it is no CycloneDX document: %v\n%.500s", err, text)
	}
	var named []string
	for _, component := range sbom.Components {
		if component.Name != "std" {
			named = append(named, component.Name+" "+component.Version)
		}
	}
	linked := strings.Split(strings.TrimSpace(goIn(t, root, "list", "-deps", "-tags", "grpcnotrace",
		"-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/plimsoll-hub")), "\n")
	linked = slices.DeleteFunc(linked, func(line string) bool { return line == "" })
	slices.Sort(linked)
	slices.Sort(named)
	if diff := cmp.Diff(slices.Compact(linked), named); diff != "" {
		t.Errorf("linked in -, named +:\n%s", diff)
	}
}

// TestTheImageHasItsSBOM reads the script, for running it would replace the image that other tests use.
func TestTheImageHasItsSBOM(t *testing.T) {
	script := read(t, "deploy/image/files.sh")
	for what, command := range map[string]string{
		"put an SBOM of the hub into the image":        `"$OLDPWD/$files/plimsoll-hub" "$OLDPWD/$files/sbom.cdx.json"`,
		"write an SBOM of the CLI of the same version": `"$OLDPWD/$cli/plimsoll" "$OLDPWD/$cli/plimsoll.cdx.json"`,
	} {
		if !strings.Contains(script, command) {
			t.Errorf("files.sh does not %s:\n%s", what, script)
		}
	}
}

func goIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir, command.Env = dir, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	said, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return string(said)
}
