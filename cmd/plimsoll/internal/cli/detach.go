package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

func forceDetachCommand(env Environment) *cobra.Command {
	var from hubFlags
	var reason string
	var undo bool
	r := enroll.Registration{}
	command := &cobra.Command{
		Use:   "force-detach NAME",
		Short: "Give up a cluster that is gone for good, so that nothing waits for it",
		Long: `Give up a member that is gone for good, so that nothing waits for it.

Orders and clean-ups that wait for the member end: the hub says of them that they were not its own, and cleans up nothing
there. What is left in the member stays as it is, finalizers included; should the member ever come back, --undo has the hub
work in it again. The registration stays: unregister deletes it.

It is an annotation with the reason on the registration Secret. The hub tells it in an Event on the Secret, in its log and in
the metric plimsoll_member_detached.`,
		Example: `  # Give a cluster up
  plimsoll force-detach prod-eu --reason "the region was given up"

  # Work in it again
  plimsoll force-detach prod-eu --undo`,
		Args:              exactly("NAME"),
		ValidArgsFunction: completeRegistered(env),
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
			hub, err := from.load(env)
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
	from.flags(command)
	registrationNamespace(flags, &r)
	r.MemberNamespace = enroll.DefaultNamespace
	flags.StringVar(&reason, "reason", "", "why the member is given up")
	flags.BoolVar(&undo, "undo", false, "work in the member again")
	return command
}
