package hub

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	webappv1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

func noControllers(Host) ([]*reconcile.Controller, error) { return nil, nil }

func TestAModuleThatCannotBeIsRefusedByName(t *testing.T) {
	clashes := errors.New("the kind is taken")
	for name, test := range map[string]struct {
		modules []Module
		want    string
	}{
		"one beside the hub's own": {modules: []Module{{Name: "trust", Register: noControllers}}},
		"no name":                  {[]Module{{Register: noControllers}}, `module "": the name must be a DNS label`},
		"nothing to register":      {[]Module{{Name: "trust"}}, `module "trust": has no Register`},
		"the name of another":      {[]Module{{Name: "webapp", Register: noControllers}}, `module "webapp": the name is taken by another module`},
		"a kind that clashes": {[]Module{{Name: "trust", Register: noControllers, AddToScheme: func(*runtime.Scheme) error { return clashes }}},
			`module "trust": kinds: the kind is taken`},
		"a resource without versions": {[]Module{{Name: "trust", Register: noControllers, Resources: []module.Resource{
			{Title: "Bundles", Group: "example.com", Kind: "Bundle", Plural: "bundles"}}}}, `resource "bundles": it has no versions`},
		"a resource in the way of pods": {[]Module{{Name: "trust", Register: noControllers, Resources: []module.Resource{{Plural: "pods"}}}},
			`resource "pods": the plural must be a DNS label, and neither pods nor convert`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := &Hub{config: config.Default()}
			for _, m := range test.modules {
				WithController(m)(h)
			}
			err := h.takeIn()
			if test.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.want)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(h.modules).To(HaveLen(2))
			g.Expect(h.scheme.Recognizes(webappv1.GroupVersion.WithKind(webappv1.Kind))).To(BeTrue())
		})
	}
}

// What names WebApps is where the hub and the CLI are put together; all else knows modules.
func TestWebAppsComeThroughTheDoorForModules(t *testing.T) {
	const kind = "github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	allowed := map[string]bool{
		"hub/modules.go": true, "hub/config/config.go": true, "hub/config/validate.go": true,
		"cmd/plimsoll/internal/cli/webapps.go": true,
	}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		path = strings.TrimPrefix(filepath.ToSlash(path), "../")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == "test" || path == "build" || path == "reconcile/webapp"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || allowed[path]:
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, one := range file.Imports {
			if name, _ := strconv.Unquote(one.Path.Value); name == kind || strings.HasPrefix(name, kind+"/") {
				t.Errorf("%s imports %s", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheSectionOfAModuleIsReadBeforeItRegisters(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "hub.yaml")
	section := struct {
		Words string `yaml:"words"`
	}{Words: "none"}
	takeIn := func(text string) error {
		g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
		loaded, err := config.Load(file, nil)
		g.Expect(err).NotTo(HaveOccurred())
		h := &Hub{config: loaded}
		WithController(Module{
			Name: "greeter", Config: &section, Register: noControllers,
		})(h)
		return h.takeIn()
	}
	g.Expect(takeIn("modules: {greeter: {words: hello}}")).To(Succeed())
	g.Expect(section.Words).To(Equal("hello"))
	g.Expect(takeIn("modules: {greeter: {word: hello}}")).To(MatchError(file + ": modules.greeter.word: \"hello\": unknown key; known here: words"))
	g.Expect(takeIn("modules: {greter: {words: hello}}")).To(MatchError(file + ": modules.greter: no module of this hub has this name"))
}
