package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// A Cluster is a control plane in a container, in a network of its own name. Its client works from this machine, also while
// the network is cut.
type Cluster struct {
	client.WithWatch
	Name string

	yard       *yard
	dir        string
	kubeconfig string // a file, for this machine
	ca         []byte
	capacity   map[string]string // of its nodes, by name
}

// startCluster starts one and waits until it works.
func startCluster(ctx context.Context, y *yard, dir, name string, minimal bool) (*Cluster, error) {
	// In the engine's own network for this machine, and in its own for the hub.
	args := []string{"--publish", "127.0.0.1::6443", controlPlaneImage, name}
	if minimal {
		args = append(args, "minimal")
	}
	if err := y.network(ctx, "net-"+name); err != nil {
		return nil, err
	}
	if err := y.create(ctx, name, args...); err != nil {
		return nil, err
	}
	if err := y.connect(ctx, "net-"+name, name, name); err != nil {
		return nil, err
	}
	if err := y.start(ctx, name); err != nil {
		return nil, err
	}
	c := &Cluster{Name: name, yard: y, dir: dir, kubeconfig: filepath.Join(dir, name+".kubeconfig")}
	err := fleet.Await(ctx, "control plane "+name, func(ctx context.Context) (bool, error) {
		_, err := docker(ctx, "cp", y.name(name)+":/state/admin.kubeconfig", c.kubeconfig)
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	address, err := y.address(ctx, name, 6443)
	if err != nil {
		return nil, err
	}
	if err := c.reach(address); err != nil {
		return nil, err
	}
	c.capacity, err = c.capacities(ctx)
	return c, err
}

// reach makes a client that goes by way of this machine's port.
func (c *Cluster) reach(address string) error {
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		return err
	}
	for _, one := range config.Clusters {
		one.Server, c.ca = "https://"+address, one.CertificateAuthorityData
	}
	if err := clientcmd.WriteToFile(*config, c.kubeconfig); err != nil {
		return err
	}
	rest, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return err
	}
	rest.QPS = -1
	c.WithWatch, err = client.NewWithWatch(rest, client.Options{Scheme: scheme.Scheme})
	return err
}

// capacities are the capacity types of its nodes; they stay as they are.
func (c *Cluster) capacities(ctx context.Context) (map[string]string, error) {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("nodes of %s: %w", c.Name, err)
	}
	capacities := map[string]string{}
	for i := range nodes.Items {
		capacities[nodes.Items[i].Name] = nodes.Items[i].Labels[kube.CapacityLabel]
	}
	return capacities, nil
}

// capacityOf is where a pod is: by its node or, while it has none, by its nodeSelector.
func (c *Cluster) capacityOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName == "" {
		return pod.Spec.NodeSelector[kube.CapacityLabel]
	}
	return c.capacity[pod.Spec.NodeName]
}

// restart kills all processes of the control plane at once, has them start again, and waits until they work.
func (c *Cluster) restart(ctx context.Context) error {
	const line = "restarted\n"
	before := strings.Count(c.yard.logs(c.Name, 1000), line)
	if err := c.yard.kill(ctx, c.Name, "HUP"); err != nil {
		return err
	}
	return fleet.Await(ctx, "control plane "+c.Name+" to be back", func(context.Context) (bool, error) {
		return strings.Count(c.yard.logs(c.Name, 1000), line) > before, nil
	})
}

// audit fetches what its audit log holds.
func (c *Cluster) audit(ctx context.Context) (events []kube.AuditEvent, err error) {
	path := filepath.Join(c.dir, c.Name+".audit.log")
	// A log that grows while it is copied can be refused.
	err = fleet.Await(ctx, "the audit log of "+c.Name, func(ctx context.Context) (bool, error) {
		_, err := docker(ctx, "cp", c.yard.name(c.Name)+":/state/audit.log", path)
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	events, err = kube.ReadAudit(file)
	if err != nil {
		return nil, fmt.Errorf("audit log of %s: %w", c.Name, err)
	}
	return events, nil
}

// kubeconfigFor is one with which a container in this cluster's network works, as the bearer of a token.
func (c *Cluster) kubeconfigFor(token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{
		// The testbed's certificate is for loopback.
		Server: "https://" + c.Name + ":6443", TLSServerName: "127.0.0.1", CertificateAuthorityData: c.ca,
	}
	config.AuthInfos["hub"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["cluster"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "hub"}
	config.CurrentContext = "cluster"
	return clientcmd.Write(*config)
}

// token asks for one of an account in the hub's namespace.
func (c *Cluster) token(ctx context.Context, account string, audiences ...string) (string, error) {
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: account}}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: ptr.To[int64](24 * 3600)},
	}
	err := c.SubResource("token").Create(ctx, owner, request)
	return request.Status.Token, err
}

// apply applies a folder below deploy/ as a person would.
func (c *Cluster) apply(ctx context.Context, folder ...string) error {
	bin, err := kube.BinDir()
	if err != nil {
		return err
	}
	root, err := repository()
	if err != nil {
		return err
	}
	path := filepath.Join(append([]string{root, "deploy"}, folder...)...)
	return command(ctx, filepath.Join(bin, "kubectl"), "--kubeconfig", c.kubeconfig, "apply", "--server-side", "-k", path)
}

// writeFile writes a file that a container can read, whoever it runs as.
func writeFile(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, 0o644)
}

// repository is the root of this checkout.
func repository() (string, error) {
	bin, err := kube.BinDir() // build/testbed/bin
	return filepath.Dir(filepath.Dir(filepath.Dir(bin))), err
}

// command runs a program.
func command(ctx context.Context, program string, args ...string) error {
	said, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, strings.TrimSpace(string(said)))
	}
	return nil
}
