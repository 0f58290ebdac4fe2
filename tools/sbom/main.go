// Command sbom writes which modules a Go binary was built from, as a CycloneDX document in JSON. It reads what the linker
// has put into the binary, so that modules of go.mod that are not linked in are not listed.
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(binary, file string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read the modules of %s: %w", binary, err)
	}
	to, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := write(to, info); err != nil {
		_ = to.Close()
		return fmt.Errorf("write %s: %w", file, err)
	}
	return to.Close()
}

// write leaves out the time and a random serial number: the same binary has the same document.
func write(to io.Writer, info *buildinfo.BuildInfo) error {
	main := component(cyclonedx.ComponentTypeApplication, &info.Main)
	main.Properties = settings(info)
	components := []cyclonedx.Component{{
		BOMRef: "std", Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
		PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	}}
	needed := []string{"std"}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, component(cyclonedx.ComponentTypeLibrary, module))
		needed = append(needed, reference(module))
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &needed}}
	return cyclonedx.NewBOMEncoder(to, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

func component(kind cyclonedx.ComponentType, module *debug.Module) cyclonedx.Component {
	return cyclonedx.Component{
		BOMRef: reference(module), Type: kind, Name: module.Path, Version: module.Version, PackageURL: reference(module),
	}
}

// reference is the package URL of a module.
func reference(module *debug.Module) string {
	return "pkg:golang/" + strings.ReplaceAll(module.Path, "+", "%2B") + "@" + strings.ReplaceAll(module.Version, "+", "%2B")
}

// settings are how the binary was built.
func settings(info *buildinfo.BuildInfo) *[]cyclonedx.Property {
	properties := []cyclonedx.Property{{Name: "go:version", Value: info.GoVersion}}
	for _, setting := range info.Settings {
		properties = append(properties, cyclonedx.Property{Name: "go:build:" + setting.Key, Value: setting.Value})
	}
	return &properties
}
