package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

// Marks around the reference in the page.
const (
	referencePage  = "../../../../docs/cli.md"
	referenceBegin = "<!-- made by: go test ./cmd/plimsoll/internal/cli -run TestTheReference -update -->\n"
	referenceEnd   = "<!-- end -->\n"
)

// TestTheReference holds the reference in the documentation to the commands.
func TestTheReference(t *testing.T) {
	content, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(content), referenceBegin)
	was, after, ends := strings.Cut(rest, referenceEnd)
	if !begins || !ends {
		t.Fatalf("%s has no reference between its marks", referencePage)
	}
	is := reference(newRoot("plimsoll", Environment{Getenv: func(string) string { return "" }}))
	if *update {
		if err := os.WriteFile(referencePage, []byte(before+referenceBegin+is+referenceEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(is, was); diff != "" {
		t.Errorf("%s (-commands +page):\n%s", referencePage, diff)
	}
}

// reference are all commands with their flags; those by which the API is reached come once.
func reference(root *cobra.Command) string {
	var text strings.Builder
	common := &cobra.Command{}
	connection.New(nil).AddFlags(common)
	fmt.Fprintf(&text, "\nFlags of every command that asks the API:\n\n%s", flagTable(common.Flags(), nil))
	eachCommand(root, func(c *cobra.Command) {
		if c.Hidden || !c.Runnable() || c.HasSubCommands() || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		fmt.Fprintf(&text, "\n### %s\n\n%s: `%s`\n", c.CommandPath(), c.Short, strings.TrimSuffix(c.UseLine(), " [flags]"))
		shared := common.Flags()
		if c.Flags().Lookup("service-account") == nil {
			shared = nil
		}
		if table := flagTable(c.Flags(), shared); table != "" {
			fmt.Fprintf(&text, "\n%s", table)
		}
	})
	return text.String() + "\n"
}

// flagTable are the flags that are not in but; "": there is none.
func flagTable(flags, but *pflag.FlagSet) string {
	var rows strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || but != nil && but.Lookup(f.Name) != nil {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		standard := ""
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
			standard = "`" + f.DefValue + "`"
		}
		_, does := pflag.UnquoteUsage(f)
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", name, standard, strings.ReplaceAll(does, "|", `\|`))
	})
	if rows.Len() == 0 {
		return ""
	}
	return "| flag | default | |\n|---|---|---|\n" + rows.String()
}
