package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/testcontainers/testcontainers-go"
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
	kubeconfig string // a file, for this machine
	ca         []byte
	capacity   map[string]string // of its nodes, by name
}

// apiPort is the port of its API server.
const apiPort = 6443

// startCluster starts one and waits until it works.
func startCluster(ctx context.Context, y *yard, dir, name string, minimal bool) (*Cluster, error) {
	request := testcontainers.ContainerRequest{Image: controlPlaneImage, Cmd: []string{name}}
	if minimal {
		request.Cmd = append(request.Cmd, "minimal")
	}
	if err := y.network(ctx, "net-"+name); err != nil {
		return nil, err
	}
	// In the engine's own network for this machine, and in its own for the hub.
	if err := y.create(ctx, name, request, apiPort); err != nil {
		return nil, err
	}
	if err := y.connect(ctx, "net-"+name, name, name); err != nil {
		return nil, err
	}
	if err := y.start(ctx, name); err != nil {
		return nil, err
	}
	c := &Cluster{Name: name, yard: y, kubeconfig: filepath.Join(dir, name+".kubeconfig")}
	var kubeconfig []byte
	err := fleet.Await(ctx, "control plane "+name, func(ctx context.Context) (_ bool, err error) {
		kubeconfig, err = y.read(ctx, name, "/state/admin.kubeconfig")
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	address, err := y.address(ctx, name, apiPort)
	if err != nil {
		return nil, err
	}
	if err := c.reach(kubeconfig, address); err != nil {
		return nil, err
	}
	c.capacity, err = c.capacities(ctx)
	return c, err
}

// reach makes a client, and a kubeconfig, that go by way of this machine's port.
func (c *Cluster) reach(kubeconfig []byte, address string) error {
	config, err := clientcmd.Load(kubeconfig)
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

// audit fetches its audit log.
func (c *Cluster) audit(ctx context.Context) (log []byte, err error) {
	// A log that grows while it is copied can be refused.
	err = fleet.Await(ctx, "the audit log of "+c.Name, func(ctx context.Context) (_ bool, err error) {
		log, err = c.yard.read(ctx, c.Name, "/state/audit.log")
		return err == nil, err
	})
	return log, err
}

// kubeconfigFor is one with which a container in this cluster's network works, as the bearer of a token.
func (c *Cluster) kubeconfigFor(token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{
		// The testbed's certificate is for loopback.
		Server: fmt.Sprintf("https://%s:%d", c.Name, apiPort), TLSServerName: "127.0.0.1", CertificateAuthorityData: c.ca,
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
