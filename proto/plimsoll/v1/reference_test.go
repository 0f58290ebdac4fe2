package plimsollv1_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

var update = flag.Bool("update", false, "write what the tests compare with")

// holds compares a file with what it has to be, or writes it.
func holds(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the .proto files make of it (%v): run make generate", file, err)
	}
}

// schema is what the reference shows of one in the OpenAPI document.
type schema struct {
	Type, Format, Description, Title string
	Ref                              string `json:"$ref"`
	Enum                             []string
	Items                            *schema
	Properties                       properties
}

// properties keep their order, which is that of the .proto file.
type properties []property

type property struct {
	name string
	schema
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *properties) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		one := property{name: fmt.Sprint(name)}
		if err := decoder.Decode(&one.schema); err != nil {
			return err
		}
		*p = append(*p, one)
	}
	return nil
}

type operation struct {
	Summary, Description, OperationID string
	Parameters                        []struct {
		schema
		Name, In string
		Schema   schema
	}
	Responses map[string]struct{ Schema schema }
}

// is names a type, with a link where the page describes it.
func (s *schema) is() string {
	if s.Ref != "" {
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	}
	switch {
	case s.Type == "array" && s.Items != nil:
		return "list of " + s.Items.is()
	case s.Format == "date-time":
		return "time"
	case s.Format == "byte":
		return "bytes"
	}
	return s.Type
}

// line is text that fits into a cell of a table.
func line(parts ...string) string {
	text := strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
}

// TestTheReference keeps docs/api-reference.md what the .proto files say.
func TestTheReference(t *testing.T) {
	var document struct {
		Paths       map[string]map[string]operation
		Definitions map[string]schema
	}
	if err := json.Unmarshal(plimsollv1.OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	page.WriteString("# API reference\n\n<!-- Made from proto/plimsoll/v1 by make generate. -->\n\n" +
		"All calls and messages, as REST writes them; [api.md](api.md) says what they are for. gRPC has the same with the field names of\n" +
		"[`proto/plimsoll/v1`](../proto/plimsoll/v1). A path parameter is part of the path, a query parameter stands behind `?`.\n")
	type call struct {
		of           operation
		method, path string
	}
	services := map[string][]call{}
	for path, methods := range document.Paths {
		for method, of := range methods {
			service, _, _ := strings.Cut(of.OperationID, "_")
			services[service] = append(services[service], call{of, strings.ToUpper(method), path})
		}
	}
	for _, service := range slices.Sorted(maps.Keys(services)) {
		calls := services[service]
		slices.SortFunc(calls, func(a, b call) int { return strings.Compare(a.of.OperationID, b.of.OperationID) })
		fmt.Fprintf(&page, "\n## %s\n", service)
		for _, c := range calls {
			_, name, _ := strings.Cut(c.of.OperationID, "_")
			fmt.Fprintf(&page, "\n### %s\n\n`%s %s`\n\n%s\n\n| parameter | in | type | what |\n|---|---|---|---|\n", name, c.method, c.path, line(c.of.Summary, c.of.Description))
			for _, p := range c.of.Parameters {
				shown := p.schema
				if p.In == "body" {
					shown = p.Schema
				}
				fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", p.Name, p.In, shown.is(), line(p.Description))
			}
			answer := c.of.Responses["200"].Schema
			fmt.Fprintf(&page, "\nAnswer: %s\n", answerOf(&answer))
		}
	}
	page.WriteString("\n## Messages\n")
	for _, name := range slices.Sorted(maps.Keys(document.Definitions)) {
		message := document.Definitions[name]
		fmt.Fprintf(&page, "\n### %s\n", name)
		if len(message.Enum) > 0 {
			about, values, _ := strings.Cut(message.Description, "\n\n")
			fmt.Fprintf(&page, "\n%s\n\n%s\n", line(message.Title, about), strings.TrimSpace(strings.ReplaceAll("\n"+values, "\n - ", "\n- ")))
			continue
		}
		if text := line(message.Title, message.Description); text != "" {
			fmt.Fprintf(&page, "\n%s\n", text)
		}
		if len(message.Properties) == 0 {
			continue
		}
		page.WriteString("\n| field | type | what |\n|---|---|---|\n")
		for _, p := range message.Properties {
			fmt.Fprintf(&page, "| `%s` | %s | %s |\n", p.name, p.is(), line(p.Title, p.Description))
		}
	}
	holds(t, "../../../docs/api-reference.md", page.Bytes())
}

// TestTheGuideNamesEveryCall: its table says which right a call needs, which the reference does not.
func TestTheGuideNamesEveryCall(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, calls, _ := strings.Cut(string(guide), "\n## Calls\n")
	calls, _, _ = strings.Cut(calls, "\n## ")
	found := 0
	protoregistry.GlobalFiles.RangeFilesByPackage(plimsollv1.File_plimsoll_v1_common_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				found++
				if name := string(methods.Get(j).Name()); !strings.Contains(calls, name+"`") {
					t.Errorf("docs/api.md does not name %s", name)
				}
			}
		}
		return true
	})
	if found == 0 {
		t.Error("no call was found")
	}
}

// answerOf names what a call answers with: a message, or a stream of them.
func answerOf(s *schema) string {
	for _, p := range s.Properties {
		if p.name == "result" {
			return "a stream of " + p.is()
		}
	}
	return s.is()
}
