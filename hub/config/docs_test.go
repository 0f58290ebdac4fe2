package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/configuration.md instead of comparing it")

const docsFile = "../../docs/configuration.md"

const docsIntro = `# Configuration

The hub reads one YAML file, which ` + "`--config`" + ` names, and then environment variables, which override the file. The tables list
the defaults.

- The hub checks everything before it starts. For an unknown key, a value of the wrong type or a value out of range it prints
  the file (or the variable), the key, the value and the rule, and exits. It prints all problems at once.
- The variable of a key is ` + "`PLIMSOLL_`" + ` and the path of the key in capitals, with ` + "`_`" + ` for dots: that of ` + "`spot.maxMoves`" + ` is
  ` + "`PLIMSOLL_SPOT_MAXMOVES`" + `. Strings, durations, addresses and networks need no quotes; separate the items of such lists with commas. Write
  everything else as YAML. An empty variable counts as unset. The hub does not start with a ` + "`PLIMSOLL_`" + ` variable that names no
  key, except those that Kubernetes sets for Services of the namespace.
- Durations have a unit: ` + "`500ms`, `30s`, `5m`" + `.
- Set ` + "`POD_NAMESPACE`, `POD_NAME` and `POD_IP`" + ` from the fields of the pod; the descriptions say where the hub uses them.
- ` + "`GOGC` and `GOMEMLIMIT`" + ` work as in any Go program. The hub's default for ` + "`GOGC`" + ` is 75.

<!-- Made from the comments in hub/config/config.go: go test ./hub/config -run TestTheDocumentation -update -->
`

// fieldComments returns the doc comment of every field of every struct in config.go, by type and field name.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, field := range fields.Fields.List {
			comments[spec.Name.Name+"."+field.Names[0].Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
		}
		return false
	})
	return comments
}

func TestTheDocumentationNamesEveryKeyWithItsDefault(t *testing.T) {
	comments, config := fieldComments(t), Default()
	root := reflect.ValueOf(config)
	var page strings.Builder
	page.WriteString(docsIntro)
	for i := range root.NumField() {
		field := root.Type().Field(i)
		comment := comments["Config."+field.Name]
		if comment == "" {
			t.Errorf("Config.%s has no comment", field.Name)
		}
		fmt.Fprintf(&page, "\n## %s\n\n%s\n", field.Tag.Get("yaml"), comment)
		if field.Type == sectionsType {
			continue
		}
		page.WriteString("\n| key | variable | default | meaning |\n|---|---|---|---|\n")
		for _, leaf := range Leaves() {
			if leaf.Index[0] == i {
				writeKey(t, &page, leaf, root, comments)
			}
		}
	}
	writeExample(&page)
	if *update {
		if err := os.WriteFile(docsFile, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != page.String() {
		t.Errorf("%s is not what config.go says; run this test with -update", docsFile)
	}
}

func writeKey(t *testing.T, page *strings.Builder, l Leaf, root reflect.Value, comments map[string]string) {
	t.Helper()
	owner := root.Type()
	for _, i := range l.Index[:len(l.Index)-1] {
		owner = owner.Field(i).Type
	}
	comment := comments[owner.Name()+"."+owner.Field(l.Index[len(l.Index)-1]).Name]
	if comment == "" {
		t.Errorf("%s has no comment in config.go", l.Path)
	}
	if len(l.Index) == 1 {
		comment = "See above."
	}
	fmt.Fprintf(page, "| `%s` | `%s` | %s | %s |\n", l.Path, EnvName(l.Path), defaultOf(root.FieldByIndex(l.Index)), comment)
}

// defaultOf shows a default as the file would have it.
func defaultOf(value reflect.Value) string {
	if value.IsZero() && (value.Kind() == reflect.Pointer || value.Kind() == reflect.Slice || value.Kind() == reflect.String || value.Kind() == reflect.Struct) {
		return ""
	}
	if d, ok := value.Interface().(time.Duration); ok {
		return "`" + d.String() + "`"
	}
	return "`" + strings.ToLower(fmt.Sprint(value.Interface())) + "`"
}

// writeExample closes the page with a file that the test below reads.
func writeExample(page *strings.Builder) {
	page.WriteString("\n## Example\n\n```yaml\n" + example + "```\n")
}

const example = `controller:
  resyncPeriod: 1m
clusters:
  allowedNetworks: [10.0.0.0/8]
spot:
  defaults: {spotPercentage: 50, minOnDemand: 1}
  maxMoves: 20%
  tolerations:
    - {key: example.com/spot, operator: Exists, effect: NoSchedule}
  nodeLabels:
    - {key: example.com/pool, spot: [cheap], onDemand: [steady, reserved]}
namespaceSelector:
  matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}
`

func TestTheExampleInTheDocumentationIsAccepted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hub.yaml")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file, nil); err != nil {
		t.Error(err)
	}
}
