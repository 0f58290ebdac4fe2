package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

// sides are the flags that name the member and the hub cluster.
type sides struct {
	kubeconfig, context       string
	hubKubeconfig, hubContext string
}

func (s *sides) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.context, "context", "", "context of the member (default: the current one of --kubeconfig)")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig with the member (default: what kubectl uses)")
	flags.StringVar(&s.hubContext, "hub-context", "", "context of the hub cluster (default: the current one of --hub-kubeconfig)")
	flags.StringVar(&s.hubKubeconfig, "hub-kubeconfig", "", "kubeconfig with the hub cluster (default: --kubeconfig)")
}

// hub is the hub cluster's context.
func (s *sides) hub() (*enroll.Context, error) {
	file := orElse(s.hubKubeconfig, s.kubeconfig)
	hub, err := enroll.Load(file, s.hubContext)
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	return hub, nil
}

// both are the two contexts. They may be one only when that was said: a hub is rarely meant to be its own member.
func (s *sides) both(c *cobra.Command) (member, hub *enroll.Context, err error) {
	if member, err = enroll.Load(s.kubeconfig, s.context); err != nil {
		return nil, nil, fmt.Errorf("member: %w", err)
	}
	if hub, err = s.hub(); err != nil {
		return nil, nil, err
	}
	if member.Config.Host == hub.Config.Host && (s.context == "" || s.hubContext == "") {
		return nil, nil, usage(c, fmt.Errorf("the member and the hub are one cluster, %s: if that is meant, use --in-cluster, or name both with --context and --hub-context", hub.Config.Host))
	}
	return member, hub, nil
}

func registerCommand(env Environment) *cobra.Command {
	r := registering{env: env}
	command := &cobra.Command{
		Use:   "register (NAME... | --in-cluster)",
		Short: "Register clusters as members of the fleet",
		Long: `Make a cluster a member of the fleet.

In the member, this makes a service account for the hub with a role of its own, an empty webhook configuration that the hub
keeps current, and a token. In the hub cluster, it makes the registration Secret NAME with that token. Nothing is changed
before it is known that all of it can be; doing it again changes nothing.

With --namespaces, the member is these namespaces of the cluster and no more: the hub gets rights in each of them, and beyond
them to read nodes. One cluster can be registered several times, under several names, for namespaces that do not overlap.

With --in-cluster, the hub's own cluster becomes a member, named in-cluster unless NAME says another name: one context names both, and the
hub reaches the API server as every pod there does.

With several names, each is registered from the kubeconfig's context of that name, some at a time, and one report says what became
of each. The command fails if one of them does; what was registered stays.`,
		Example: `  # Register a cluster
  plimsoll register prod-eu --context prod-eu --hub-context hub

  # Print what would be applied
  plimsoll register prod-eu --context prod-eu --hub-context hub --dry-run

  # Register the cluster in which the hub runs
  plimsoll register --in-cluster

  # Register two namespaces of a cluster
  plimsoll register prod-shop --namespaces shop,cart --context prod --hub-context hub

  # Register several clusters, each from the context of its name
  plimsoll register prod-eu prod-us staging --hub-context hub`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && !r.inCluster {
				return usage(c, errors.New("missing: NAME"))
			}
			return nil
		},
		RunE: r.run,
	}
	flags := command.Flags()
	r.sides.flags(flags)
	namespaceFlags(flags, &r.Registration)
	flags.StringSliceVar(&r.Namespaces, "namespaces", nil, "register these namespaces of the member only, with rights in them alone (default: the whole cluster)")
	flags.StringSliceVar(&r.WorkloadResources, "workload-resources", nil,
		"further workloads that the hub may read, as kubectl names them: rollouts.argoproj.io; for the kinds in its spot.workloadKinds")
	flags.BoolVar(&r.Fleet, "fleet", false, "let the hub set how many replicas workloads have, for FleetPlacements")
	flags.StringSliceVar(&r.Writes, "writes", nil,
		"resources that the hub may write for reconcilers that you added to it, as kubectl names them: configmaps,certificates.cert-manager.io")
	flags.StringSliceVar(&r.Keeps, "keeps", nil,
		"custom kinds whose definition and webhooks the hub keeps current for reconcilers that you added to it: bundles.example.com")
	flags.StringSliceVar(&r.AnnotationPrefixes, "annotation-prefix", nil,
		"prefix of labels and annotations that the hub may change in the member, as in its spot.annotationPrefix (default: plimsoll.dev)")
	flags.StringVar(&r.WebhookURL, "webhook-url", "",
		"URL at which the member reaches the hub, as in its webhook.url: webhooks may be at no other (default: the first one that the hub writes)")
	flags.StringVar(&r.Server, "server", "", "URL at which the hub reaches the member's API server (default: that of --context)")
	flags.StringVar(&r.caFile, "ca-file", "", "PEM file with the CA of that server (default: that of --context)")
	flags.DurationVar(&r.TokenDuration, "token-duration", 30*24*time.Hour, "how long the hub's token lives; the hub renews it before it expires; 0: one that never does")
	flags.DurationVar(&r.timeout, "timeout", 2*time.Minute, "how long one member may take")
	flags.BoolVar(&r.inCluster, "in-cluster", false, "register the hub's own cluster, which --context names, or else the current context")
	complete(command, "context", completeContexts(&r.sides.kubeconfig))
	complete(command, "hub-context", completeContexts(&r.sides.hubKubeconfig))
	flags.BoolVar(&r.dryRun, "dry-run", false, "print what would be applied, without the token, and talk to no cluster")
	return command
}

func namespaceFlags(flags *pflag.FlagSet, r *enroll.Registration) {
	r.Kinds = ownKinds()
	registrationNamespace(flags, r)
	flags.StringVar(&r.MemberNamespace, "member-namespace", enroll.DefaultNamespace, "namespace of the hub's account in the member")
}

// registering is one call of register.
type registering struct {
	enroll.Registration
	env     Environment
	sides   sides
	caFile  string
	dryRun  bool
	timeout time.Duration
	// inCluster: the hub's own cluster is registered.
	inCluster bool
}

func (r *registering) run(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return r.many(c, args)
	}
	r.Name = inClusterName
	if len(args) == 1 {
		r.Name = args[0]
	}
	if err := r.Validate(); err != nil {
		return usage(c, err)
	}
	member, hub, err := r.clusters(c)
	if err != nil {
		return err
	}
	if r.caFile != "" {
		if r.CA, err = os.ReadFile(r.caFile); err != nil {
			return fmt.Errorf("--ca-file: %w", err)
		}
	}
	if r.dryRun {
		text, err := enroll.Render(r.Registration, member, hub)
		if err == nil {
			_, err = r.env.Out.Write(text)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), r.timeout)
	defer cancel()
	outcome, err := enroll.Register(ctx, r.Registration, member, hub, changes(r.env.Out))
	if err != nil {
		return fmt.Errorf("register %s: %w", r.Name, err)
	}
	registered(r.env, r.Name, outcome)
	return nil
}

// inClusterName is that of the hub's own cluster, unless a person says another one.
const inClusterName = "in-cluster"

// clusters are the two contexts, or twice that of the hub's own cluster.
func (r *registering) clusters(c *cobra.Command) (member, hub *enroll.Context, err error) {
	if !r.inCluster {
		return r.sides.both(c)
	}
	if r.sides.context != "" && r.sides.hubContext != "" && r.sides.context != r.sides.hubContext {
		return nil, nil, usage(c, errors.New("--in-cluster, --context and --hub-context: the hub and the member are one cluster: give one context"))
	}
	both, err := enroll.Load(orElse(r.sides.kubeconfig, r.sides.hubKubeconfig), orElse(r.sides.context, r.sides.hubContext))
	if err != nil || r.Server != "" {
		return both, both, err
	}
	r.Server = enroll.InClusterServer
	if r.caFile == "" && !r.dryRun {
		r.CA, err = enroll.InClusterCA(c.Context(), both)
	}
	return both, both, err
}

// changes prints each object as it is done.
func changes(to io.Writer) func(enroll.Change) {
	return func(c enroll.Change) {
		note := ""
		if c.Note != "" {
			note = " (" + c.Note + ")"
		}
		fmt.Fprintf(to, "%-6s  %-9s  %s%s\n", c.Side, c.Action, c.Object, note)
	}
}

// registered says what a person should know now.
func registered(env Environment, name string, outcome enroll.Outcome) {
	if !outcome.Expires.IsZero() {
		fmt.Fprintf(env.Err, "note: the hub's token expires at %s; the hub renews it before that\n", outcome.Expires.UTC().Format(time.RFC3339))
	}
	if outcome.Loopback {
		fmt.Fprintln(env.Err, "note: the member's server is a loopback address, which a hub on another machine cannot reach: give --server if it is")
	}
	fmt.Fprintf(env.Out, "%s is registered; `plimsoll get clusters` shows its state\n", name)
}

func unregisterCommand(env Environment) *cobra.Command {
	var from sides
	var keep bool
	r := enroll.Registration{}
	command := &cobra.Command{
		Use:   "unregister NAME",
		Short: "Remove a cluster from the fleet",
		Long: `Take a cluster out of the fleet: delete its registration Secret in the hub cluster, and in the member what register made
there. What somebody else made stays, and pods stay where they are.`,
		Example: `  # Remove a cluster
  plimsoll unregister prod-eu --context prod-eu --hub-context hub

  # Remove a cluster that is gone
  plimsoll unregister prod-eu --hub-context hub --keep-member`,
		Args:              exactly("NAME"),
		ValidArgsFunction: completeRegistered(env),
		RunE: func(c *cobra.Command, args []string) error {
			r.Name = args[0]
			if err := r.Validate(); err != nil {
				return usage(c, err)
			}
			var member, hub *enroll.Context
			var err error
			switch {
			case keep && from.context != "":
				return usage(c, errors.New("--context and --keep-member: give one of them"))
			case keep:
				hub, err = from.hub()
			default:
				member, hub, err = from.both(c)
			}
			if err != nil {
				return err
			}
			if err := enroll.Unregister(c.Context(), r, member, hub, changes(env.Out)); err != nil {
				return fmt.Errorf("unregister %s: %w", r.Name, err)
			}
			return nil
		},
	}
	flags := command.Flags()
	from.flags(flags)
	namespaceFlags(flags, &r)
	flags.BoolVar(&keep, "keep-member", false, "change nothing in the member, for instance because it is gone")
	return command
}
