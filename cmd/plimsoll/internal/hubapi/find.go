package hubapi

import (
	"context"
	"fmt"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
)

// What the hub publishes in its namespace.
const (
	// ConfigMap has whom to trust under CAKey, as PEM, and under AddressKey the host:port of gRPC, if the hub's configuration says one.
	ConfigMap  = "plimsoll-api-ca"
	CAKey      = "ca.crt"
	AddressKey = "address"
	// Service leads to the pods that serve the API, on its port GRPCPort.
	Service  = "plimsoll-api"
	GRPCPort = "grpc"
)

// Endpoint is where the hub's API answers.
type Endpoint struct {
	// Address is host:port of gRPC.
	Address string
	// ServerName is the name in the certificate; "": the host of Address.
	ServerName string
	// CA is whom to trust beside those that the system trusts, as PEM; nil: nobody.
	CA []byte

	stop func()
}

// Close ends what was opened to reach the endpoint.
func (e Endpoint) Close() {
	if e.stop != nil {
		e.stop()
	}
}

// Cluster is the hub cluster, as a person reaches it.
type Cluster struct {
	context, namespace string
	config             *rest.Config
	core               corev1client.CoreV1Interface
}

// Connect makes a client; it does not talk to the cluster yet. namespace is the hub's.
func Connect(from *enroll.Context, namespace string) (*Cluster, error) {
	core, err := corev1client.NewForConfig(from.Config)
	if err != nil {
		return nil, fmt.Errorf("hub (context %q): create a client: %w", from.Name, err)
	}
	return &Cluster{context: from.Name, namespace: namespace, config: from.Config, core: core}, nil
}

// failed says what an error is about.
func (c *Cluster) failed(doing string, err error) error {
	return fmt.Errorf("hub (context %q): %s: %w", c.context, doing, err)
}

// Find returns the address that the hub publishes, or else one on this machine that is forwarded to a pod of the hub. Close the endpoint.
func (c *Cluster) Find(ctx context.Context) (Endpoint, error) {
	published, err := c.core.ConfigMaps(c.namespace).Get(ctx, ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Endpoint{}, c.failed("find the hub", fmt.Errorf("there is no configmap/%s/%s, which a hub publishes: %w", c.namespace, ConfigMap, err))
	}
	if err != nil {
		return Endpoint{}, c.failed("find the hub: read configmap/"+c.namespace+"/"+ConfigMap, err)
	}
	found := Endpoint{Address: published.Data[AddressKey], CA: []byte(published.Data[CAKey])}
	if found.Address == "" {
		found.Address, found.stop, err = c.forward(ctx)
		found.ServerName = Service + "." + c.namespace + ".svc"
		return found, err
	}
	if _, _, err := net.SplitHostPort(found.Address); err != nil {
		return Endpoint{}, c.failed("find the hub", fmt.Errorf("%s in configmap/%s/%s is %q: must be host:port", AddressKey, c.namespace, ConfigMap, found.Address))
	}
	return found, nil
}
