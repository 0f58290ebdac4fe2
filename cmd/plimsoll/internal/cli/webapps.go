package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
)

// webAppKind is what is installed for WebApps.
func webAppKind() enroll.Kind {
	return enroll.Kind{Resource: webapp.Resource(webapp.Policy{}), Rights: webapp.Rights(), SecretRights: webapp.SecretRights()}
}

// ownKinds are those that every hub has a module for.
func ownKinds() []enroll.Kind { return []enroll.Kind{webAppKind()} }

func webAppsCommand(env Environment) *cobra.Command {
	command := &cobra.Command{
		Use:   "webapps",
		Short: "Install the WebApp kind in a cluster, or uninstall it",
		Example: `  # Install the WebApp kind
  plimsoll webapps install prod-eu`,
		Args: needsResource("install or uninstall"),
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	command.AddCommand(installWebAppsCommand(env), uninstallWebAppsCommand(env))
	return command
}

// target is the member that a command is about, by its context.
type target struct{ kubeconfig, context string }

func (t *target) flags(command *cobra.Command, webApps *enroll.Installed) {
	t.contextFlags(command)
	flags := command.Flags()
	flags.Lookup("context").Usage = "context of the cluster (default: CLUSTER, or the current one of --kubeconfig)"
	flags.StringVar(&webApps.Namespace, "member-namespace", enroll.DefaultNamespace, "namespace of the hub's account in the member")
}

// contextFlags are those that name the context.
func (t *target) contextFlags(command *cobra.Command) {
	command.Flags().StringVar(&t.context, "context", "", "context of the cluster (default: CLUSTER)")
	command.Flags().StringVar(&t.kubeconfig, "kubeconfig", "", "kubeconfig with the cluster (default: what kubectl uses)")
	complete(command, "context", connection.CompleteContexts(&t.kubeconfig))
}

func (t *target) load(args []string) (*enroll.Context, error) {
	name := t.context
	if len(args) == 1 {
		name = cmp.Or(name, args[0])
	}
	member, err := enroll.Load(t.kubeconfig, name)
	if err != nil {
		return nil, fmt.Errorf("member: %w", err)
	}
	return member, nil
}

func installWebAppsCommand(env Environment) *cobra.Command {
	var member target
	webApps := enroll.Installed{Kind: webAppKind()}
	var dryRun bool
	command := &cobra.Command{
		Use:   "install [CLUSTER]",
		Short: "Install the WebApp kind in a member",
		Long: `Install the WebApp kind in a member.

In the member, this creates the definition of the kind, a role with the rights that WebApps need, and an empty webhook
configuration. The hub then serves the kind in registered members: it adds itself as the converter between versions, and keeps these
objects up to date. It is safe to run the command again. It does not change the definition of a newer version.

CLUSTER is the context of the cluster in your kubeconfig, unless --context names another.`,
		Example: `  # Install the WebApp kind
  plimsoll webapps install prod-eu

  # Let WebApps in two namespaces name Secrets
  plimsoll webapps install prod-eu --secrets shop,cart

  # Print what would be applied
  plimsoll webapps install --dry-run`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if dryRun {
				text, err := enroll.RenderInstall(webApps)
				if err == nil {
					_, err = env.Out.Write(text)
				}
				return err
			}
			context, err := member.load(args)
			if err != nil {
				return err
			}
			if err := enroll.Install(c.Context(), webApps, context, changes(env.Out)); err != nil {
				return fmt.Errorf("webapps install: %w", err)
			}
			return nil
		},
	}
	flags := command.Flags()
	member.flags(command, &webApps)
	flags.StringSliceVar(&webApps.Secrets, "secrets", nil,
		"namespaces in which the hub may read Secrets that WebApps use; *: all namespaces (default: none)")
	flags.BoolVar(&dryRun, "dry-run", false, "print the objects, and contact no cluster")
	return command
}

func uninstallWebAppsCommand(env Environment) *cobra.Command {
	var member target
	webApps := enroll.Installed{Kind: webAppKind()}
	command := &cobra.Command{
		Use:   "uninstall [CLUSTER]",
		Short: "Remove the WebApp kind from a member",
		Long: `Remove the WebApp kind from a member: what "webapps install" created there, the definition last.

It refuses while there are WebApps, because deleting the definition deletes all of them. Objects of others stay.

CLUSTER is the context of the cluster in your kubeconfig, unless --context names another.`,
		Example: `  # Remove the WebApp kind
  plimsoll webapps uninstall prod-eu`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			context, err := member.load(args)
			if err != nil {
				return err
			}
			if err := enroll.Uninstall(c.Context(), webApps, context, changes(env.Out)); err != nil {
				return fmt.Errorf("webapps uninstall: %w", err)
			}
			return nil
		},
	}
	member.flags(command, &webApps)
	return command
}
