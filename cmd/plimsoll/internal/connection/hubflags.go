package connection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

// HubFlags name the hub cluster in a command about nothing else. They are kubectl's; --hub-context and --hub-kubeconfig, which commands
// about a member as well have, are the same here.
type HubFlags struct {
	// Kubeconfig is the path of the file; "": what kubectl reads.
	Kubeconfig string
	// Context is its name in the file; "": PLIMSOLL_HUB_CONTEXT of the environment, else the current one.
	Context string
}

// AddFlags adds the flags to a command, with the other names that its flags may have.
func (f *HubFlags) AddFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "kubeconfig with the hub cluster (default: what kubectl uses)")
	flags.StringVar(&f.Context, "context", "", "context of the hub cluster (PLIMSOLL_HUB_CONTEXT; default: the current one)")
	utilruntime.Must(command.RegisterFlagCompletionFunc("context", CompleteContexts(&f.Kubeconfig))) // fails only for a flag that is not there
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
	case "certificate-authority":
		name = "ca-file"
	case "request-timeout":
		name = "timeout"
	}
	return pflag.NormalizedName(name)
}

// Load reads the context of the hub cluster; getenv reads the environment.
func (f *HubFlags) Load(getenv func(string) string) (*enroll.Context, error) {
	hub, err := enroll.Load(f.Kubeconfig, cmp.Or(f.Context, getenv("PLIMSOLL_HUB_CONTEXT")))
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	return hub, nil
}

// CompleteContexts completes contexts of the kubeconfig at file, which is read when a shell asks; "": what kubectl reads.
func CompleteContexts(file *string) cobra.CompletionFunc {
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
