package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

// hubFlags name the hub cluster in a command about nothing else. They are kubectl's; --hub-context and --hub-kubeconfig, which commands
// about a member as well have, are the same here.
type hubFlags struct{ kubeconfig, context string }

func (f *hubFlags) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig with the hub cluster (default: what kubectl uses)")
	flags.StringVar(&f.context, "context", "", "context of the hub cluster (PLIMSOLL_HUB_CONTEXT; default: the current one)")
	complete(command, "context", completeContexts(&f.kubeconfig))
	flags.SetNormalizeFunc(otherNames)
}

// otherNames are flags that have a second name in some command.
func otherNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "hub-context":
		name = "context"
	case "hub-kubeconfig":
		name = "kubeconfig"
	case "api":
		name = "server"
	}
	return pflag.NormalizedName(name)
}

// load reads the context.
func (f *hubFlags) load(env Environment) (*enroll.Context, error) {
	hub, err := enroll.Load(f.kubeconfig, orElse(f.context, env.Getenv("PLIMSOLL_HUB_CONTEXT")))
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	return hub, nil
}

// completeContexts completes contexts of a kubeconfig.
func completeContexts(file *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = *file
		config, err := rules.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for name := range config.Contexts {
			if strings.HasPrefix(name, start) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
