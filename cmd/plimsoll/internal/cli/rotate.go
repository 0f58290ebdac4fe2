package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

func rotateCommand(env Environment) *cobra.Command {
	var from sides
	var revoke bool
	var timeout time.Duration
	r := enroll.Registration{}
	command := &cobra.Command{
		Use:   "rotate CLUSTER",
		Short: "Replace the hub's credentials for a cluster",
		Long: `Replace the token with which the hub works in a cluster. The hub takes the new one over without a gap. The old one stays valid until it
expires, unless --revoke creates the hub's account in the cluster anew: then every token of it is void at once, and the hub is without access
until it reads the new one, usually within seconds.

The hub renews its tokens by itself before they expire; use this command when one may have leaked. CLUSTER is the context of the cluster in
your kubeconfig, unless --context names another one.`,
		Example: `  # Replace the token
  plimsoll rotate prod-eu --hub-context hub

  # Replace a token that has leaked
  plimsoll rotate prod-eu --hub-context hub --revoke`,
		Args:              exactly("CLUSTER"),
		ValidArgsFunction: completeRegistered(env),
		RunE: func(c *cobra.Command, args []string) error {
			r.Name = args[0]
			if err := r.Validate(); err != nil {
				return usage(c, err)
			}
			from.context = orElse(from.context, r.Name)
			member, err := enroll.Load(from.kubeconfig, from.context)
			if err != nil {
				return fmt.Errorf("member: %w", err)
			}
			hub, err := from.hub()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			expires, err := enroll.Rotate(ctx, r, member, hub, revoke, changes(env.Out))
			if err != nil {
				return fmt.Errorf("rotate %s: %w", r.Name, err)
			}
			fmt.Fprintf(env.Err, "note: the new token expires at %s; the hub renews it before that\n", expires.UTC().Format(time.RFC3339))
			return nil
		},
	}
	flags := command.Flags()
	from.flags(flags)
	flags.Lookup("context").Usage = "context of the cluster (default: CLUSTER)"
	namespaceFlags(flags, &r)
	flags.BoolVar(&revoke, "revoke", false, "make all tokens void that were issued before")
	flags.DurationVar(&timeout, "timeout", 2*time.Minute, "how long it may take")
	complete(command, "context", completeContexts(&from.kubeconfig))
	complete(command, "hub-context", completeContexts(&from.hubKubeconfig))
	return command
}
