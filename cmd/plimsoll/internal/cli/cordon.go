package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

// marking is a command that sets an annotation of one registration, or removes it.
type marking struct {
	env        Environment
	hub        hubFlags
	r          enroll.Registration
	annotation string
	value      string // "": the annotation is removed
}

// flags adds those that name the hub cluster and the registration in it.
func (m *marking) flags(command *cobra.Command) {
	m.hub.flags(command)
	registrationNamespace(command.Flags(), &m.r)
	m.r.MemberNamespace = enroll.DefaultNamespace
}

func registrationNamespace(flags *pflag.FlagSet, r *enroll.Registration) {
	flags.StringVarP(&r.Namespace, "namespace", "n", enroll.RegistrationNamespace, "namespace of registrations in the hub cluster")
}

func (m *marking) run(c *cobra.Command, args []string) error {
	m.r.Name = args[0]
	if err := m.r.Validate(); err != nil {
		return usage(c, err)
	}
	hub, err := m.hub.load(m.env)
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
		Short: "Mark a cluster: no new replicas, and no moves",
		Long: `Mark a cluster so that the hub moves no pod there, and brings no further replicas there from other clusters. Pods that run keep
running, and pods that the cluster creates itself are still placed.

It is the annotation plimsoll.dev/cordoned of the registration Secret.`,
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
		Short: "Unmark a cluster: new replicas and moves again",
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
		conn := connection{env: env, namespace: enroll.DefaultNamespace, timeout: completionPatience, token: tokenSource{audience: defaultAudience}}
		conn.hub.kubeconfig, _ = c.Flags().GetString("kubeconfig") // "" where a command has no such flag
		conn.hub.context, _ = c.Flags().GetString("hub-context")
		return completeCluster(&conn)(c, args, start)
	}
}
