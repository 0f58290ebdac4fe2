package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

func installCommand(env Environment) *cobra.Command {
	var kubeconfig, context string
	var webApps enroll.WebApps
	var dryRun bool
	command := &cobra.Command{
		Use:   "install [MEMBER]",
		Short: "Have a member know WebApps",
		Long: `Have a member know WebApps.

In the member, this makes the definition of the kind, a role with what the hub may do about WebApps, and an empty webhook
configuration. Registered members are then served: the hub adds itself as the converter between the versions, and keeps all of it
current. Doing it again changes nothing, and a definition of a newer Plimsoll is left alone.

MEMBER is the context of the member in your kubeconfig, unless --context names another.`,
		Example: `  plimsoll install prod-eu
  plimsoll install --context prod-eu
  plimsoll install prod-eu --secrets shop,cart
  plimsoll install --dry-run`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if dryRun {
				text, err := enroll.RenderInstall(webApps)
				if err == nil {
					_, err = env.Out.Write(text)
				}
				return err
			}
			if len(args) == 1 {
				context = orElse(context, args[0])
			}
			member, err := enroll.Load(kubeconfig, context)
			if err != nil {
				return fmt.Errorf("member: %w", err)
			}
			if err := enroll.Install(c.Context(), webApps, member, changes(env.Out)); err != nil {
				return fmt.Errorf("install: %w", err)
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&context, "context", "", "context of the member (default: MEMBER, or the current one of --kubeconfig)")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig with the member (default: what kubectl uses)")
	flags.StringSliceVar(&webApps.Secrets, "secrets", nil,
		"namespaces in which the hub may read Secrets, for WebApps that name some; * for all of them (default: none)")
	flags.StringVar(&webApps.Namespace, "member-namespace", enroll.DefaultNamespace, "namespace of the hub's account in the member")
	flags.BoolVar(&dryRun, "dry-run", false, "print what would be applied, and talk to no cluster")
	return command
}
