package kube

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// A Cluster is a running control plane. Its methods may be called from several goroutines at once.
type Cluster struct {
	name  string
	dir   string
	opts  Options
	bin   string
	owned bool // dir is ours to remove

	record *record
	ca     *authority
	token  string // the admin's

	etcdPort, peerPort, apiPort *heldPort

	karpenter atomic.Pointer[KarpenterOptions] // nil: it was never started here

	client client.Client
	nodes  atomic.Int64 // how many were ever added, for their names
	log    *lineWriter

	mu        sync.Mutex
	processes map[Component]*proc.Process
	stopped   bool
}

// Name is the name that the cluster was started with.
func (c *Cluster) Name() string { return c.name }

// Dir is the folder with the cluster's state and, under logs, what its components say.
func (c *Cluster) Dir() string { return c.dir }

// URL is the API server's address.
func (c *Cluster) URL() string { return "https://" + c.apiPort.address() }

// CAData is the certificate, in PEM, that the API server's own was issued by.
func (c *Cluster) CAData() []byte { return append([]byte(nil), c.ca.pem...) }

// Config is the admin's, without limits on the client's side. Each call returns a copy.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{
		Host:            c.URL(),
		BearerToken:     c.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CAData()},
		QPS:             -1,
		UserAgent:       AdminUserAgent,
	}
}

// AdminUserAgent is what the testbed's own requests are found under in the audit log.
const AdminUserAgent = "plimsoll-testbed"

// Client reads and writes live, as the admin, with the types that client-go knows. For other types make one from Config.
func (c *Cluster) Client() client.Client { return c.client }

// newClient makes the admin's client.
func (c *Cluster) newClient() (client.Client, error) {
	made, err := client.New(c.Config(), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: make a client: %w", c.name, err)
	}
	return made, nil
}

// Stop kills the components, frees the ports, and removes the cluster's folder unless it was named in Options. It may
// be called again.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.stopped = true
	running := slices.Collect(maps.Values(c.processes))
	c.mu.Unlock()

	problems := []error{proc.KillAll(running)} // all at once, so that none sees the others go and complains
	c.releasePorts()
	c.closeConnections()
	if c.owned {
		problems = append(problems, os.RemoveAll(c.dir))
	}
	c.record.remove()
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("stop cluster %s: %w", c.name, err)
	}
	return nil
}

func (c *Cluster) releasePorts() {
	for _, port := range []*heldPort{c.etcdPort, c.peerPort, c.apiPort} {
		if port != nil {
			port.release()
		}
	}
}

// closeConnections lets the goroutines of idle connections end, which a check for leaks would find.
func (c *Cluster) closeConnections() {
	if transport, err := rest.TransportFor(c.Config()); err == nil {
		utilnet.CloseIdleConnectionsFor(transport)
	}
}

// file is the path of a file in the cluster's folder.
func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

// logFile is where a component's output goes.
func (c *Cluster) logFile(component Component) string {
	return filepath.Join(c.dir, "logs", string(component)+".log")
}

// LogOf is what a component has said so far.
func (c *Cluster) LogOf(component Component) ([]byte, error) {
	return os.ReadFile(c.logFile(component))
}

// process is a component's latest process, running or not.
func (c *Cluster) process(component Component) (*proc.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.processes[component]
	if !ok {
		return nil, fmt.Errorf("cluster %s has no component %q", c.name, component)
	}
	return p, nil
}

// lineWriter writes whole lines from several goroutines.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lineWriter) printf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = fmt.Fprintf(w.out, format+"\n", args...) // a log that cannot be written changes nothing
}
