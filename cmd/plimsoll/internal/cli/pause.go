package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

// toggle is pause or resume.
type toggle struct {
	env Environment
	on  bool
}

func pauseCommand(env Environment) *cobra.Command {
	command := &cobra.Command{
		Use:   "pause (workload|cluster|hub)",
		Short: "Pause placement for a workload, a cluster, or all clusters",
		Long: `Pause placement for a workload, a cluster, or all clusters.

The hub moves no pod of a paused workload; it still places new pods. In a paused cluster placement writes nothing: it moves, labels
and places no pod, but shows what it would do. Controllers of modules and the hub's own objects in the cluster go on as before.`,
		Example: `  # Pause the moves of a workload
  plimsoll pause workload prod-eu deployment/cart -n shop

  # Pause a cluster
  plimsoll pause cluster prod-eu

  # Pause all clusters
  plimsoll pause hub`,
		Args: needsResource("workload, cluster, or hub"),
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	on := toggle{env: env, on: true}
	command.AddCommand(on.workload(), on.cluster(), on.hub())
	return command
}

func resumeCommand(env Environment) *cobra.Command {
	command := &cobra.Command{
		Use:   "resume (workload|cluster|hub)",
		Short: "Resume placement for a workload, a cluster, or all clusters",
		Example: `  # Resume a workload
  plimsoll resume workload prod-eu deployment/cart -n shop

  # Resume all clusters, except those that are paused by themselves
  plimsoll resume hub`,
		Args: needsResource("workload, cluster, or hub"),
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	off := toggle{env: env}
	command.AddCommand(off.workload(), off.cluster(), off.hub())
	return command
}

// verb is the command's name, and past what the help says of what it does.
func (t toggle) verb() string {
	if t.on {
		return "pause"
	}
	return "resume"
}

// value is that of the annotation; "": it is removed.
func (t toggle) value() string {
	if t.on {
		return enroll.On
	}
	return ""
}

// title is a line of help.
func (t toggle) title(rest string) string {
	return strings.ToUpper(t.verb()[:1]) + t.verb()[1:] + " " + rest
}

func (t toggle) workload() *cobra.Command {
	var member target
	var namespace, prefix string
	command := &cobra.Command{
		Use:   "workload " + workloadUse,
		Short: t.title("the moves of a workload"),
		Long: t.title(`the moves of a workload, with your kubeconfig's context of the cluster.

The annotation plimsoll.dev/paused of the workload does the same.`) + workloadLong,
		Example: `  # Name the context of the cluster, if it has not the cluster's name
  plimsoll ` + t.verb() + ` workload prod-eu deployment/cart -n shop --context admin@prod-eu`,
		Args:              workloadArguments,
		ValidArgsFunction: completeRegistered(t.env),
		RunE: func(c *cobra.Command, args []string) error {
			key, err := parseWorkloadArguments(args, namespace)
			if err != nil {
				return usage(c, err)
			}
			context, err := member.load(args[:1])
			if err != nil {
				return err
			}
			change, err := enroll.MarkWorkload(c.Context(), context, key.namespace, strings.ToLower(key.kind), key.name, prefix+enroll.PausedSuffix, t.value())
			if err != nil {
				return fmt.Errorf("%s %s: %w", t.verb(), key, err)
			}
			changes(t.env.Out)(change)
			return nil
		},
	}
	workloadNamespace(command, &namespace)
	member.contextFlags(command)
	command.Flags().StringVar(&prefix, "annotation-prefix", defaultPrefix, "prefix of annotations, as in spot.annotationPrefix of the hub's configuration")
	return command
}

const defaultPrefix = "plimsoll.dev"

func (t toggle) cluster() *cobra.Command {
	m := &marking{env: t.env, annotation: enroll.ReadOnlyAnnotation, value: t.value()}
	command := &cobra.Command{
		Use:   "cluster NAME",
		Short: t.title("placement in a cluster"),
		Long: t.title(`placement in a cluster. While it is paused, the hub moves, labels and places no pod there.

The annotation plimsoll.dev/read-only of the registration Secret does the same.`),
		Args:              exactly("NAME"),
		ValidArgsFunction: completeRegistered(t.env),
		RunE:              m.run,
	}
	m.flags(command)
	return command
}

func (t toggle) hub() *cobra.Command {
	m := &marking{env: t.env}
	command := &cobra.Command{
		Use:   "hub",
		Short: t.title("placement in all clusters"),
		Long: t.title(`placement in all clusters, also in those that you register later. Clusters that you paused one by one stay paused when the
hub resumes.

The annotation plimsoll.dev/read-only of the Secret plimsoll-all-members does the same, in the namespace of the registrations. To start a
hub that writes nothing, set spot.readOnly in its configuration.`),
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			hub, err := m.hub.Load(t.env.Getenv)
			if err != nil {
				return err
			}
			done, err := enroll.MarkAll(c.Context(), m.r.Namespace, hub, enroll.ReadOnlyAnnotation, t.on)
			for _, change := range done {
				changes(t.env.Out)(change)
			}
			if err != nil {
				return fmt.Errorf("%s hub: %w", t.verb(), err)
			}
			return nil
		},
	}
	m.flags(command)
	return command
}
