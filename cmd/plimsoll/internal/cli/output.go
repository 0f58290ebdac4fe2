package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// Formats that -o takes.
const (
	formatTable      = "table"
	formatWide       = "wide"
	formatJSON       = "json"
	formatYAML       = "yaml"
	formatName       = "name"
	formatJSONPath   = "jsonpath"
	formatGoTemplate = "go-template"

	formatNames = "table, wide, json, yaml, name, jsonpath=TEMPLATE, go-template=TEMPLATE"
)

// output is the format that was asked for.
type output struct {
	format   string
	template printers.ResourcePrinter // of jsonpath and go-template
}

func (o *output) flags(command *cobra.Command) {
	command.Flags().StringVarP(&o.format, "output", "o", formatTable, "format: "+formatNames)
	complete(command, "output", cobra.FixedCompletions(
		[]cobra.Completion{formatTable, formatWide, formatJSON, formatYAML, formatName, formatJSONPath + "=", formatGoTemplate + "="}, cobra.ShellCompDirectiveNoFileComp))
	before := command.PreRunE
	command.PreRunE = func(c *cobra.Command, args []string) error {
		if err := o.parse(); err != nil {
			return usage(c, err)
		}
		if before != nil {
			return before(c, args)
		}
		return nil
	}
}

// parse reads what was given with -o.
func (o *output) parse() (err error) {
	given := o.format
	format, template, templated := strings.Cut(given, "=")
	switch format {
	case formatJSONPath:
		var printer *printers.JSONPathPrinter
		if printer, err = printers.NewJSONPathPrinter(template); err == nil {
			printer.AllowMissingKeys(true) // as kubectl does: fields that are unset are left out
			o.template = printer
		}
	case formatGoTemplate:
		var printer *printers.GoTemplatePrinter
		if printer, err = printers.NewGoTemplatePrinter([]byte(template)); err == nil {
			printer.AllowMissingKeys(true)
			o.template = printer
		}
	case formatTable, formatWide, formatJSON, formatYAML, formatName:
		if templated {
			return fmt.Errorf("-o %q: %s takes no template", given, format)
		}
		return nil
	default:
		return fmt.Errorf("-o %q: must be one of %s", given, formatNames)
	}
	if err == nil && template == "" {
		return fmt.Errorf("-o %q: a template is missing, as in %s=TEMPLATE", given, format)
	}
	if err != nil {
		return fmt.Errorf("-o %q: %w", given, err)
	}
	o.format = format
	return nil
}

// forPeople reports whether the answer is written as text for people.
func (o *output) forPeople() bool { return o.format == formatTable || o.format == formatWide }

// wide reports whether tables have all of their columns.
func (o *output) wide() bool { return o.format == formatWide }

// write prints a message in the format that was asked for: as what table prints, or by its names, which are those of the resources in it.
func (o *output) write(to io.Writer, message proto.Message, names []string, table func(io.Writer) error) error {
	switch {
	case o.forPeople():
		return table(to)
	case o.format == formatName:
		for _, name := range names {
			if _, err := fmt.Fprintln(to, plain(name)); err != nil {
				return err
			}
		}
		return nil
	}
	// As the REST side answers. protojson's own spacing differs from build to build.
	compact, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	text, err := o.encode(compact)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	_, err = to.Write(text)
	return err
}

// writeChange prints one change of something that is watched, given as JSON.
func (o *output) writeChange(to io.Writer, compact []byte) error {
	text, err := compact, error(nil)
	if o.template != nil || o.format == formatYAML {
		text, err = o.encode(compact)
	}
	switch {
	case err != nil:
	case o.format == formatYAML:
		_, err = fmt.Fprintf(to, "%s---\n", text)
	default:
		_, err = fmt.Fprintf(to, "%s\n", text)
	}
	return err
}

// encode turns an answer in JSON into the format that was asked for.
func (o *output) encode(compact []byte) ([]byte, error) {
	var text bytes.Buffer
	switch {
	case o.template != nil:
		content := map[string]any{}
		if err := json.Unmarshal(compact, &content); err != nil {
			return nil, err
		}
		err := o.template.PrintObj(&unstructured.Unstructured{Object: content}, &text)
		return text.Bytes(), err
	case o.format == formatYAML:
		return yaml.JSONToYAML(compact)
	}
	if err := json.Indent(&text, compact, "", "  "); err != nil {
		return nil, err
	}
	text.WriteByte('\n')
	return text.Bytes(), nil
}

// warn reports which members an answer says nothing about, or says it from an old copy.
func warn(to io.Writer, unreachable []*plimsollv1.UnreachableMember) {
	for _, u := range unreachable {
		fmt.Fprintf(to, "warning: member %s is missing or may be out of date: %s\n", cmp.Or(plain(u.GetMember()), "(unknown)"), plain(u.GetReason()))
	}
}
