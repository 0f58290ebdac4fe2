package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

func forceDetachCommand(env Environment) *cobra.Command {
	var from sides
	var reason string
	var undo bool
	r := enroll.Registration{}
	command := &cobra.Command{
		Use:   "force-detach NAME",
		Short: "Give up a member that is gone for good, so that nothing waits for it",
		Long: `Give up a member that is gone for good, so that nothing waits for it.

Orders and clean-ups that wait for the member end: the hub says of them that they were not its own, and cleans up nothing
there. What is left in the member stays as it is, finalizers included; should the member ever come back, --undo has the hub
work in it again. The registration stays: unregister deletes it.

It is an annotation with the reason on the registration Secret. The hub tells it in an Event on the Secret, in its log and in
the metric plimsoll_member_detached.`,
		Example: `  plimsoll force-detach prod-eu --reason "the region was given up" --hub-context hub
  plimsoll force-detach prod-eu --undo --hub-context hub`,
		Args: exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			r.Name = args[0]
			if err := r.Validate(); err != nil {
				return usage(c, err)
			}
			switch reason = strings.TrimSpace(reason); {
			case undo && reason != "":
				return usage(c, errors.New("--reason and --undo: give one of them"))
			case !undo && reason == "":
				return usage(c, errors.New("--reason: say why, for those who will read it in the audit"))
			}
			hub, err := from.hub()
			if err != nil {
				return err
			}
			change, err := enroll.ForceDetach(c.Context(), r, hub, reason)
			if err != nil {
				return fmt.Errorf("force-detach %s: %w", r.Name, err)
			}
			changes(env.Out)(change)
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&from.hubContext, "hub-context", "", "context of the hub cluster (default: the current one of --hub-kubeconfig)")
	flags.StringVar(&from.hubKubeconfig, "hub-kubeconfig", "", "kubeconfig with the hub cluster (default: what kubectl uses)")
	namespaceFlags(flags, &r)
	flags.StringVar(&reason, "reason", "", "why the member is given up")
	flags.BoolVar(&undo, "undo", false, "work in the member again")
	return command
}
