package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

var formats = []string{"table", "json", "yaml"}

// output is the format that was asked for.
type output struct{ format string }

func (o *output) flags(command *cobra.Command) {
	command.Flags().StringVarP(&o.format, "output", "o", "table", "format: "+strings.Join(formats, ", "))
	before := command.PreRunE
	command.PreRunE = func(c *cobra.Command, args []string) error {
		if !slices.Contains(formats, o.format) {
			return usage(c, fmt.Errorf("-o %q: must be one of %s", o.format, strings.Join(formats, ", ")))
		}
		if before != nil {
			return before(c, args)
		}
		return nil
	}
}

// write prints a message as JSON or YAML, or what table prints.
func (o *output) write(to io.Writer, message proto.Message, table func(io.Writer) error) error {
	if o.format == "table" {
		return table(to)
	}
	// As the REST side answers. protojson's own spacing differs from build to build.
	compact, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	if o.format == "yaml" {
		text, err := yaml.JSONToYAML(compact)
		if err != nil {
			return fmt.Errorf("encode the answer: %w", err)
		}
		_, err = to.Write(text)
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, compact, "", "  "); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	text.WriteByte('\n')
	_, err = text.WriteTo(to)
	return err
}

// warn tells which members an answer says nothing about, or says it from an old copy.
func warn(to io.Writer, unreachable []*plimsollv1.UnreachableMember) {
	for _, u := range unreachable {
		fmt.Fprintf(to, "warning: member %s is not shown, or may be shown as it was: %s\n", orElse(u.GetMember(), "(unknown)"), u.GetReason())
	}
}
