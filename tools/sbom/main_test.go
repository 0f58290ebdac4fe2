package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// TestADocumentNamesWhatIsLinkedIn reads this very test, which is a Go binary like any other.
func TestADocumentNamesWhatIsLinkedIn(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/sbom.json"
	if err := run(self, file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if name := bom.Metadata.Component.Name; name != "github.com/plimsoll-dev/plimsoll/tools/sbom" {
		t.Errorf("it is about %s", name)
	}
	for _, wanted := range []string{"std", "github.com/CycloneDX/cyclonedx-go"} {
		if !slices.ContainsFunc(*bom.Components, func(c cyclonedx.Component) bool { return c.Name == wanted && c.Version != "" }) {
			t.Errorf("%s is missing in %s", wanted, text)
		}
	}
}

func TestADocumentNamesTheReplacementOfAModule(t *testing.T) {
	var into bytes.Buffer
	info := &buildinfo.BuildInfo{GoVersion: "go1.26.7", Main: debug.Module{Path: "example.com/a", Version: "(devel)"},
		Deps: []*debug.Module{{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v2.0.0+incompatible"}}}}
	if err := write(&into, info); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(into.String(), "pkg:golang/example.com/c@v2.0.0%2Bincompatible") || strings.Contains(into.String(), "example.com/b") {
		t.Error(into.String())
	}
}

func TestWhatIsNoGoBinaryHasNoDocument(t *testing.T) {
	if err := run("main.go", t.TempDir()+"/sbom.json"); err == nil || !strings.Contains(err.Error(), "main.go") {
		t.Error(err)
	}
}
