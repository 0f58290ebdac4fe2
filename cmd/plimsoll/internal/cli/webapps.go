package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
)

// webAppKind is what is installed for WebApps.
func webAppKind() enroll.Kind {
	return enroll.Kind{Resource: webapp.Resource(webapp.Policy{}), Rights: webapp.Rights(), SecretRights: webapp.SecretRights()}
}

func webAppsCommand(env Environment) *cobra.Command {
	command := &cobra.Command{
		Use:   "webapps",
		Short: "Install WebApps in a member, or uninstall them",
	}
	command.AddCommand(installWebAppsCommand(env), uninstallWebAppsCommand(env))
	return command
}

// target is the member that a command is about, by its context.
type target struct{ kubeconfig, context string }

func (t *target) flags(flags *pflag.FlagSet, webApps *enroll.Installed) {
	flags.StringVar(&t.context, "context", "", "context of the member (default: MEMBER, or the current one of --kubeconfig)")
	flags.StringVar(&t.kubeconfig, "kubeconfig", "", "kubeconfig with the member (default: what kubectl uses)")
	flags.StringVar(&webApps.Namespace, "member-namespace", enroll.DefaultNamespace, "namespace of the hub's account in the member")
}

func (t *target) load(args []string) (*enroll.Context, error) {
	name := t.context
	if len(args) == 1 {
		name = orElse(name, args[0])
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
		Use:   "install [MEMBER]",
		Short: "Install the WebApp kind in a member",
		Long: `Install the WebApp kind in a member.

In the member, this creates the definition of the kind, a role with what the hub may do about WebApps, and an empty webhook
configuration. Registered members are then served: the hub adds itself as the converter between the versions, and keeps all of it
current. Running it again changes nothing, and a definition of a newer Plimsoll is left alone.

MEMBER is the context of the member in your kubeconfig, unless --context names another.`,
		Example: `  plimsoll webapps install prod-eu
  plimsoll webapps install --context prod-eu
  plimsoll webapps install prod-eu --secrets shop,cart
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
	member.flags(flags, &webApps)
	flags.StringSliceVar(&webApps.Secrets, "secrets", nil,
		"namespaces in which the hub may read Secrets, for WebApps that name some; * for all of them (default: none)")
	flags.BoolVar(&dryRun, "dry-run", false, "print what would be applied, and talk to no cluster")
	return command
}

func uninstallWebAppsCommand(env Environment) *cobra.Command {
	var member target
	webApps := enroll.Installed{Kind: webAppKind()}
	command := &cobra.Command{
		Use:   "uninstall [MEMBER]",
		Short: "Remove the WebApp kind from a member",
		Long: `Remove the WebApp kind from a member: what "webapps install" created there, the definition last.

It refuses while there are WebApps, because deleting the definition deletes every one of them. What somebody else created stays.

MEMBER is the context of the member in your kubeconfig, unless --context names another.`,
		Example: `  plimsoll webapps uninstall prod-eu`,
		Args:    cobra.MaximumNArgs(1),
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
	member.flags(command.Flags(), &webApps)
	return command
}
