package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

// marking is a command that sets an annotation of one registration, or removes it.
type marking struct {
	env        Environment
	hub        connection.HubFlags
	r          enroll.Registration
	annotation string
	value      string // "": the annotation is removed
}

// flags adds those that name the hub cluster and the registration in it.
func (m *marking) flags(command *cobra.Command) {
	m.hub.AddFlags(command)
	registrationNamespace(command.Flags(), &m.r)
	m.r.MemberNamespace = enroll.DefaultNamespace
}

func registrationNamespace(flags *pflag.FlagSet, r *enroll.Registration) {
	flags.StringVarP(&r.Namespace, "registration-namespace", "n", enroll.RegistrationNamespace, "namespace of registrations in the hub cluster")
}

func (m *marking) run(c *cobra.Command, args []string) error {
	m.r.Name = args[0]
	if err := m.r.Validate(); err != nil {
		return usage(c, err)
	}
	hub, err := m.hub.Load(m.env.Getenv)
	if err != nil {
		return err
	}
	change, err := enroll.Mark(c.Context(), m.r, hub, m.annotation, m.value)
	if err != nil {
		return fmt.Errorf("%s %s: %w", c.Name(), m.r.Name, err)
	}
	changes(m.env.Out)(change)
	return nil
}

func cordonCommand(env Environment) *cobra.Command {
	m := &marking{env: env, annotation: enroll.CordonedAnnotation, value: enroll.On}
	command := &cobra.Command{
		Use:   "cordon CLUSTER",
		Short: "Mark a cluster as unschedulable: no moves, and no replicas from other clusters",
		Long: `Mark a cluster as unschedulable: the hub moves no pod there, and adds no replicas there from other clusters. Running pods stay, and
the hub still places pods that the cluster itself creates.

The annotation plimsoll.dev/cordoned of the registration Secret does the same.`,
		Example: `  # Cordon a cluster before maintenance
  plimsoll cordon prod-eu`,
		Args:              exactly("CLUSTER"),
		ValidArgsFunction: completeRegistered(env),
		RunE:              m.run,
	}
	m.flags(command)
	return command
}

func uncordonCommand(env Environment) *cobra.Command {
	m := &marking{env: env, annotation: enroll.CordonedAnnotation}
	command := &cobra.Command{
		Use:   "uncordon CLUSTER",
		Short: "Mark a cluster as schedulable",
		Example: `  # Use the cluster again
  plimsoll uncordon prod-eu`,
		Args:              exactly("CLUSTER"),
		ValidArgsFunction: completeRegistered(env),
		RunE:              m.run,
	}
	m.flags(command)
	return command
}

// completeRegistered completes the name of a member, for commands that do not ask the hub otherwise.
func completeRegistered(env Environment) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		conn := connection.New(env.Getenv)
		conn.Hub.Kubeconfig, _ = c.Flags().GetString("kubeconfig") // "" where a command has no such flag
		conn.Hub.Context, _ = c.Flags().GetString("hub-context")
		return completeCluster(conn)(c, args, start)
	}
}
