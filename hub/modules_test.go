package hub

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	webappv1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

func noControllers(Host) ([]*reconcile.Controller, error) { return nil, nil }

func TestAModuleThatCannotBeIsRefusedByName(t *testing.T) {
	clashes := errors.New("the kind is taken")
	for name, test := range map[string]struct {
		modules []Module
		want    string
	}{
		"one beside another":  {modules: []Module{{Name: "trust", Register: noControllers}}},
		"no name":             {[]Module{{Register: noControllers}}, `module "": the name must be a DNS label`},
		"nothing to register": {[]Module{{Name: "trust"}}, `module "trust": has no Register`},
		"the name of another": {[]Module{{Name: "webapp", Register: noControllers}}, `module "webapp": another module has the same name`},
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
			WithController(webapp.Module())(h)
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

// What names WebApps is the program that the hub is, and the commands about them; all else knows modules. What comments and the help of the
// CLI say is for people.
func TestWebAppsComeThroughTheDoorForModules(t *testing.T) {
	allowed := map[string]bool{
		"cmd/plimsoll-hub/main.go": true, "cmd/plimsoll/internal/cli/webapps.go": true, "cmd/plimsoll/internal/cli/root.go": true,
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
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join("..", path), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			text := ""
			switch node := node.(type) {
			case *ast.Ident:
				text = node.Name
			case *ast.ImportSpec:
				text = node.Path.Value
			case *ast.BasicLit:
				if !strings.HasPrefix(path, "cmd/plimsoll/internal/cli/") {
					text = node.Value
				}
			}
			if strings.Contains(strings.ToLower(text), "webapp") {
				t.Errorf("%s: %s", files.Position(node.Pos()), text)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWebAppsAreJudgedByTheSectionOfTheirModule(t *testing.T) {
	g := NewWithT(t)
	takeIn := func(environ ...string) (*Hub, error) {
		loaded, err := config.Load("", environ)
		g.Expect(err).NotTo(HaveOccurred())
		h := &Hub{config: loaded}
		WithController(webapp.Module())(h)
		return h, h.takeIn()
	}
	asked := module.Review{Object: []byte(`{"spec":{"containers":[{"name":"a","image":"a"}],"replicas":51}}`)}
	for _, test := range []struct {
		environ []string
		refused int
	}{
		{},
		{environ: []string{"PLIMSOLL_MODULES_WEBAPP_IMAGEPOLICY=deny"}, refused: 1},
		{environ: []string{"PLIMSOLL_MODULES_WEBAPP_IMAGEPOLICY=deny", "PLIMSOLL_MODULES_WEBAPP_MAXREPLICAS=50"}, refused: 2},
	} {
		h, err := takeIn(test.environ...)
		g.Expect(err).NotTo(HaveOccurred())
		judged, err := h.resources()[0].Review(asked)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(judged.Refusals).To(HaveLen(test.refused), "%v", test.environ)
	}
	_, err := takeIn("PLIMSOLL_MODULES_WEBAPP_IMAGEPOLICY=never", "PLIMSOLL_MODULES_WEBAPP_MAXREPLICAS=0")
	g.Expect(err).To(MatchError("PLIMSOLL_MODULES_WEBAPP_IMAGEPOLICY: modules.webapp.imagePolicy: never: must be deny, warn or allow\n" +
		"PLIMSOLL_MODULES_WEBAPP_MAXREPLICAS: modules.webapp.maxReplicas: 0: must be from 1 to 10000"))
}

// The keys of the module are not in docs/configuration.md, which is made from the hub's own.
func TestThePageOnWebAppsNamesTheKeysOfItsModule(t *testing.T) {
	page, err := os.ReadFile("../docs/webapp.md")
	if err != nil {
		t.Fatal(err)
	}
	section := reflect.ValueOf(webapp.Module().Config).Elem()
	for i := range section.NumField() {
		key := "modules.webapp." + section.Type().Field(i).Tag.Get("yaml")
		if row := fmt.Sprintf("| `%s` | `%s` | `%v` |", key, config.EnvName(key), section.Field(i)); !strings.Contains(string(page), row) {
			t.Errorf("docs/webapp.md has no row that begins with %s", row)
		}
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
