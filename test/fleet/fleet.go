package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// Namespace holds the hub's own objects in the hub cluster, and its service account in members.
const Namespace = "plimsoll-system"

// Registrations is the namespace of registration Secrets in the hub cluster.
const Registrations = "plimsoll-members"

// Options say what fleet to start.
type Options struct {
	// Members are the names of full clusters that are started, and not yet registered.
	Members []string
	// Nodes is how many nodes of each capacity type a member gets; default 3. NoNodes: none, for members in which something
	// else makes them.
	Nodes int
	// NodePods is how many pods fit on a node; default 250.
	NodePods int
	// Proxy, when given, says how a member's proxy shows itself.
	Proxy func(member string) kube.ProxyOptions
	// Log receives lines about the start. Default: nowhere.
	Log io.Writer
}

// NoNodes is for Options.Nodes: members start without a node.
const NoNodes = -1

// A Fleet is a hub cluster with members. Its methods may be called from several goroutines at once, but for Stop.
type Fleet struct {
	// Hub is the hub cluster: an API server with Secrets and Leases, and nothing that runs pods.
	Hub *kube.Cluster
	// Members in the order of their names in Options.
	Members []*Member
	// Balancer stands in front of the replicas' webhook endpoints.
	Balancer *Balancer

	options Options
	dir     string

	scraping sync.Mutex
	scrapes  *Scraper // nil until metrics are first read; guarded by scraping
}

// A Member is a cluster that is, or can be, registered at the hub.
type Member struct {
	// Name of the member and of its registration Secret.
	Name string
	// Cluster is the real one; requests that are not the hub's go there.
	Cluster *kube.Cluster
	// Proxy is what the hub connects to.
	Proxy *kube.Proxy

	nodes nodeTypes
}

// Client is the member's admin client, which reads live.
func (m *Member) Client() client.Client { return m.Cluster.Client() }

// Start starts the hub cluster and all members at once. When one fails, none is left running.
func Start(ctx context.Context, options Options) (_ *Fleet, err error) {
	options = options.withDefaults()
	f := &Fleet{options: options, Members: make([]*Member, len(options.Members))}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Stop())
		}
	}()
	if f.dir, err = os.MkdirTemp("", "plimsoll-fleet-"); err != nil {
		return nil, fmt.Errorf("start a fleet: %w", err)
	}
	if f.Balancer, err = NewBalancer(); err != nil {
		return nil, fmt.Errorf("start a fleet: %w", err)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		f.Hub, err = kube.Start(groupCtx, kube.Options{Name: "hub", Minimal: true, Log: options.Log})
		return err
	})
	for i, name := range options.Members {
		group.Go(func() (err error) {
			f.Members[i], err = f.startMember(groupCtx, kube.Options{Name: name, Log: options.Log})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("start a fleet: %w", err)
	}
	return f, f.prepareHub(ctx)
}

func (o Options) withDefaults() Options {
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	if o.NodePods == 0 {
		o.NodePods = 250
	}
	if o.Proxy == nil {
		o.Proxy = func(string) kube.ProxyOptions { return kube.ProxyOptions{} }
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

// StartMember starts one more cluster. It is not registered yet.
func (f *Fleet) StartMember(ctx context.Context, options kube.Options) (*Member, error) {
	m, err := f.startMember(ctx, options)
	if err != nil {
		return nil, err
	}
	f.Members = append(f.Members, m)
	return m, nil
}

func (f *Fleet) startMember(ctx context.Context, options kube.Options) (*Member, error) {
	cluster, err := kube.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	m := &Member{Name: options.Name, Cluster: cluster}
	for _, capacity := range []string{kube.Spot, kube.OnDemand} {
		spec := kube.NodeSpec{Capacity: capacity, Pods: f.options.NodePods}
		if _, err := cluster.AddNodes(ctx, max(f.options.Nodes, 0), spec); err != nil {
			return nil, errors.Join(err, cluster.Stop())
		}
	}
	if m.Proxy, err = kube.NewProxy(cluster, f.options.Proxy(m.Name)); err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return m, nil
}

// StopMember ends one member's cluster; the fleet forgets it.
func (f *Fleet) StopMember(m *Member) error {
	f.Members = slices.DeleteFunc(f.Members, func(other *Member) bool { return other == m })
	return m.stop()
}

func (m *Member) stop() error {
	m.Proxy.Close()
	return m.Cluster.Stop()
}

// prepareHub makes the hub's namespaces, and the kubeconfig file that replicas read.
func (f *Fleet) prepareHub(ctx context.Context) error {
	for _, name := range []string{Namespace, Registrations} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := f.Hub.Client().Create(ctx, namespace); err != nil {
			return fmt.Errorf("hub cluster: make namespace %s: %w", name, err)
		}
	}
	if err := os.WriteFile(f.hubKubeconfig(), f.Hub.Kubeconfig(), 0o600); err != nil {
		return fmt.Errorf("write the hub's kubeconfig: %w", err)
	}
	return nil
}

func (f *Fleet) hubKubeconfig() string { return filepath.Join(f.dir, "hub.kubeconfig") }

// Stop ends all clusters and removes what they left. Stop replicas before.
func (f *Fleet) Stop() error {
	var problems []error
	if f.Balancer != nil {
		f.Balancer.Close()
	}
	for _, m := range f.Members {
		if m != nil {
			problems = append(problems, m.stop())
		}
	}
	if f.Hub != nil {
		problems = append(problems, f.Hub.Stop())
	}
	if f.dir != "" {
		problems = append(problems, os.RemoveAll(f.dir))
	}
	return errors.Join(problems...)
}
