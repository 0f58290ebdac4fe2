package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

func forceDetachCommand(env Environment) *cobra.Command {
	var from connection.HubFlags
	var reason string
	var undo bool
	r := enroll.Registration{}
	command := &cobra.Command{
		Use:   "force-detach NAME",
		Short: "Detach a cluster that will not come back, so that nothing waits for it",
		Long: `Detach a member that will not come back, so that nothing waits for it.

The hub ends requeues and finalizers that wait for the member, with outcome NotOurs, and cleans up nothing there. Everything
that is left in the member stays, finalizers included. If the member comes back, use --undo. The registration stays until you
unregister the member.

The annotation plimsoll.dev/force-detached of the registration Secret holds the reason. The hub reports it in an Event on the
Secret, in its log and in the metric plimsoll_member_detached.`,
		Example: `  # Detach a cluster
  plimsoll force-detach prod-eu --reason "the region was given up"

  # Attach it again
  plimsoll force-detach prod-eu --undo`,
		Args:              exactly("NAME"),
		ValidArgsFunction: completeRegistered(env),
		RunE: func(c *cobra.Command, args []string) error {
			r.Name = args[0]
			if err := r.Validate(); err != nil {
				return usage(c, err)
			}
			reason = strings.TrimSpace(reason)
			if err := checkReason(reason, undo); err != nil {
				return usage(c, err)
			}
			hub, err := from.Load(env.Getenv)
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
	from.AddFlags(command)
	registrationNamespace(flags, &r)
	r.MemberNamespace = enroll.DefaultNamespace
	flags.StringVar(&reason, "reason", "", "why the member is detached")
	flags.BoolVar(&undo, "undo", false, "attach the member again")
	return command
}

// checkReason refuses a detachment without a reason, and one for attaching again.
func checkReason(reason string, undo bool) error {
	switch {
	case undo && reason != "":
		return errors.New("--reason and --undo: give one of them")
	case !undo && reason == "":
		return errors.New("--reason: must not be empty; it appears in the audit log")
	}
	return nil
}
