package cli

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Environment is what the command line gets from outside.
type Environment struct {
	// Out gets what was asked for, Err everything else.
	Out, Err io.Writer
	// Getenv reads the environment.
	Getenv func(string) string
	// Now is the clock, for ages.
	Now func() time.Time
}

// Run executes the command line args, whose first is the program's name, and returns the exit code.
func Run(ctx context.Context, args []string, env Environment) int {
	root := newRoot(args[0], env)
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if strings.HasPrefix(err.Error(), "unknown command ") { // cobra has no type for it
		err = usage(root, err)
	}
	return report(env.Err, err)
}

// newRoot creates all commands; name is how the program was called.
func newRoot(name string, env Environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "plimsoll",
		Short: "plimsoll controls a fleet of Kubernetes clusters through a Plimsoll hub",
		Long: `plimsoll controls a fleet of Kubernetes clusters through a Plimsoll hub.

Fleet commands find the hub's API through the current context of your kubeconfig, which must be the hub cluster; --context selects another
one. Member commands use your kubeconfigs and need no running hub.`,
		Version:       clientVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(c, err) })
	add := func(id, title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	add("fleet", "Fleet Commands (call the hub's API):", getCommand(env), describeCommand(env), explainCommand(env), whatIfCommand(env), requeueCommand(env), cancelCommand(env), eventsCommand(env),
		topCommand(env), checkCommand(env), dashboardCommand(env))
	add("members", "Member Commands (use your kubeconfigs):", registerCommand(env), unregisterCommand(env), rotateCommand(env), cordonCommand(env),
		uncordonCommand(env), pauseCommand(env), resumeCommand(env), forceDetachCommand(env), webAppsCommand(env))
	add("other", "Other Commands:", replayCommand(env), versionCommand(env))
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	root.AddCommand(shortForms(env)...)
	eachCommand(root, completeNoFiles)
	if strings.HasPrefix(filepath.Base(name), "kubectl-") {
		asPlugin(root)
	}
	return root
}

// asPlugin makes the help say what people type.
func asPlugin(root *cobra.Command) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl plimsoll"}
	eachCommand(root, func(c *cobra.Command) {
		c.Example = strings.ReplaceAll(c.Example, "  plimsoll ", "  kubectl plimsoll ")
	})
}

// eachCommand calls do for all commands below one.
func eachCommand(of *cobra.Command, do func(*cobra.Command)) {
	for _, c := range of.Commands() {
		do(c)
		eachCommand(c, do)
	}
}

// usageError is a mistake in the command line.
type usageError struct {
	cause error
	help  string // the command that explains it
}

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

func usage(c *cobra.Command, err error) error {
	return &usageError{cause: err, help: c.CommandPath() + " --help"}
}

// exactly checks that a command got the arguments that it takes, by name.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) > len(names):
			return usage(c, errors.New("too many arguments: "+strings.Join(args[len(names):], " ")))
		case len(args) < len(names):
			return usage(c, errors.New("missing: "+strings.Join(names[len(args):], " ")))
		}
		return nil
	}
}
