package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
	"github.com/plimsoll-dev/plimsoll/hub/confine"
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
	file := cmp.Or(s.hubKubeconfig, s.kubeconfig)
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
		return nil, nil, usage(c, fmt.Errorf("the member and the hub are the same cluster, %s: if you want this, use --in-cluster, or set both --context and --hub-context", hub.Config.Host))
	}
	return member, hub, nil
}

func registerCommand(env Environment) *cobra.Command {
	r := registering{env: env, api: connection.New(env.Getenv)}
	command := &cobra.Command{
		Use:   "register (NAME... | --in-cluster)",
		Short: "Register clusters as members of the fleet",
		Long: `Register a cluster as a member of the fleet.

In the member, this creates a service account for the hub with a role and a token, policies that restrict this account, and an
empty webhook configuration, which the hub fills in. In the hub cluster, it creates the registration Secret NAME with the token.
The command changes nothing unless you have all the rights that it needs. It is safe to run it again.

With --tenant-namespaces, the member is only these namespaces of the cluster: the hub gets rights in them, and the right to read
nodes. You can register a cluster several times, under different names, for namespaces that do not overlap.

With --in-cluster, the hub's own cluster becomes a member. Its name is in-cluster, unless you set NAME. The hub reaches the API
server at https://kubernetes.default.svc. The registration has a service account of its own, plimsoll-in-cluster, because the hub's own
account can read the hub's keys. The same holds whenever the member turns out to be the hub's own cluster.

With several names, the command registers each from the context of that name in your kubeconfig, and prints one report. It fails
if one of them fails; the others stay registered.

With --wait, it watches the hub's API until the hub has connected to each member with this registration and reports it as Ready. It finds
the API as fleet commands do, and changes nothing if the API does not answer. The exit code is 6 if members are registered and do not
become ready within --timeout. Without --wait, no hub has to run.`,
		Example: `  # Register a cluster
  plimsoll register prod-eu --context prod-eu --hub-context hub

  # Print what would be applied
  plimsoll register prod-eu --context prod-eu --hub-context hub --dry-run

  # Register the cluster in which the hub runs
  plimsoll register --in-cluster

  # Register two namespaces of a cluster
  plimsoll register prod-shop --tenant-namespaces shop,cart --context prod --hub-context hub

  # Register several clusters, each from the context of its name, and wait until they are ready
  plimsoll register prod-eu prod-us staging --hub-context hub --wait`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && !r.InCluster {
				return usage(c, errors.New("missing: NAME"))
			}
			return nil
		},
		RunE: r.run,
	}
	r.flags(command)
	return command
}

func (r *registering) flags(command *cobra.Command) {
	flags := command.Flags()
	r.sides.flags(flags)
	namespaceFlags(flags, &r.Registration)
	flags.StringSliceVar(&r.Namespaces, "tenant-namespaces", nil, "register only these namespaces of the cluster, with rights only there (default: the whole cluster)")
	flags.StringSliceVar(&r.WorkloadResources, "workload-resources", nil,
		"additional workload resources that the hub may read, for its spot.workloadKinds: rollouts.argoproj.io")
	flags.BoolVar(&r.Fleet, "fleet", false, "let the hub scale workloads, for FleetPlacements")
	flags.StringSliceVar(&r.Writes, "writes", nil,
		"resources that the hub may write, for your own reconcilers: configmaps,certificates.cert-manager.io")
	flags.StringSliceVar(&r.Keeps, "keeps", nil,
		"custom resources whose definition and webhooks the hub updates, for your own reconcilers: bundles.example.com")
	flags.StringSliceVar(&r.AnnotationPrefixes, "annotation-prefix", nil,
		"prefix of the labels and annotations that the hub may change in the member: its spot.annotationPrefix (default: plimsoll.dev)")
	flags.StringVar(&r.WebhookURL, "webhook-url", "",
		"URL at which the member reaches the hub: its webhook.url; the policies allow no other URL in webhooks (default: the first one that the hub writes)")
	flags.StringVar(&r.Server, "server", "", "URL at which the hub reaches the member's API server (default: that of --context)")
	flags.StringVar(&r.caFile, "ca-file", "", "PEM file with the CA of that server (default: that of --context)")
	flags.DurationVar(&r.TokenDuration, "token-duration", confine.DefaultTokenLife, "lifetime of the hub's token, which the hub renews; 0: it does not expire")
	flags.DurationVar(&r.timeout, "timeout", 2*time.Minute, "timeout for each member, which includes --wait")
	flags.BoolVar(&r.wait, "wait", false, "wait until each member is Ready")
	r.api.AddNamespaceFlag(flags)
	flags.BoolVar(&r.InCluster, "in-cluster", false, "register the hub's own cluster: that of --context, or of the current context")
	complete(command, "context", connection.CompleteContexts(&r.sides.kubeconfig))
	complete(command, "hub-context", connection.CompleteContexts(&r.sides.hubKubeconfig))
	flags.BoolVar(&r.dryRun, "dry-run", false, "print the objects without the token, and contact no cluster")
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
	// wait: until the hub says that the member is ready, which api asks.
	wait bool
	api  *connection.Options
}

func (r *registering) run(c *cobra.Command, args []string) error {
	if r.wait && r.dryRun {
		return usage(c, errors.New("--wait and --dry-run: give one of them"))
	}
	r.HubNamespace = r.api.Namespace()
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
	followed, err := r.follow(c.Context(), hub, r.Name)
	if err != nil {
		return err
	}
	defer followed.stop()
	ctx, cancel := context.WithTimeout(c.Context(), r.timeout)
	defer cancel()
	outcome, err := enroll.Register(ctx, r.Registration, member, hub, changes(r.env.Out))
	if err != nil {
		return fmt.Errorf("register %s: %w", r.Name, err)
	}
	registered(r.env, r.Name, outcome)
	if followed == nil {
		return nil
	}
	fmt.Fprintf(r.env.Err, "waiting for %s to be ready\n", r.Name)
	if err := followed.ready(ctx, r.Name, outcome.Version); err != nil {
		return err
	}
	fmt.Fprintf(r.env.Out, "%s is ready\n", r.Name)
	return nil
}

// inClusterName is that of the hub's own cluster, unless a person says another one.
const inClusterName = "in-cluster"

// clusters are the two contexts, or twice that of the hub's own cluster.
func (r *registering) clusters(c *cobra.Command) (member, hub *enroll.Context, err error) {
	if !r.InCluster {
		return r.sides.both(c)
	}
	if r.sides.context != "" && r.sides.hubContext != "" && r.sides.context != r.sides.hubContext {
		return nil, nil, usage(c, errors.New("--in-cluster, --context and --hub-context: the hub and the member are the same cluster: set one context"))
	}
	both, err := enroll.Load(cmp.Or(r.sides.kubeconfig, r.sides.hubKubeconfig), cmp.Or(r.sides.context, r.sides.hubContext))
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
	for _, warning := range outcome.Warnings {
		fmt.Fprintln(env.Err, "warning: "+warning)
	}
	if outcome.Loopback {
		fmt.Fprintln(env.Err, "note: the member's server is a loopback address: set --server if the hub runs on another machine")
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
		Long: `Remove a cluster from the fleet: delete its registration Secret in the hub cluster, and the objects that register created in
the member. Objects of others stay, and pods stay where they are.`,
		Example: `  # Remove a cluster
  plimsoll unregister prod-eu --context prod-eu --hub-context hub

  # Remove a cluster that no longer exists
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
	flags.BoolVar(&keep, "keep-member", false, "change nothing in the member, for example because it no longer exists")
	return command
}
