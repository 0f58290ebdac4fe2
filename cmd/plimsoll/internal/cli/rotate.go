package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

func rotateCommand(env Environment) *cobra.Command {
	var from sides
	var revoke bool
	var timeout time.Duration
	r := enroll.Registration{}
	command := &cobra.Command{
		Use:   "rotate CLUSTER",
		Short: "Replace the hub's token for a cluster",
		Long: `Replace the hub's token for a cluster. The hub switches to the new token without interruption. The old token stays valid until it expires.
With --revoke, the command creates the hub's account in the cluster again: this invalidates all its tokens at once, and the hub has no access
until it reads the new one, usually within seconds.

The hub renews its tokens before they expire. Use this command if a token may have leaked. CLUSTER is the context of the cluster in
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
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			return rotate(ctx, env, from, r, revoke)
		},
	}
	flags := command.Flags()
	from.flags(flags)
	flags.Lookup("context").Usage = "context of the cluster (default: CLUSTER)"
	namespaceFlags(flags, &r)
	flags.BoolVar(&revoke, "revoke", false, "invalidate all older tokens")
	flags.DurationVar(&timeout, "timeout", 2*time.Minute, "timeout of the command")
	complete(command, "context", connection.CompleteContexts(&from.kubeconfig))
	complete(command, "hub-context", connection.CompleteContexts(&from.hubKubeconfig))
	return command
}

// rotate replaces the token of a registration, and says how long the new one is valid.
func rotate(ctx context.Context, env Environment, from sides, r enroll.Registration, revoke bool) error {
	from.context = cmp.Or(from.context, r.Name)
	member, err := enroll.Load(from.kubeconfig, from.context)
	if err != nil {
		return fmt.Errorf("member: %w", err)
	}
	hub, err := from.hub()
	if err != nil {
		return err
	}
	expires, err := enroll.Rotate(ctx, r, member, hub, revoke, changes(env.Out))
	if err != nil {
		return fmt.Errorf("rotate %s: %w", r.Name, err)
	}
	fmt.Fprintf(env.Err, "note: the new token expires at %s; the hub renews it before that\n", expires.UTC().Format(time.RFC3339))
	return nil
}
