package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// Ports of a replica that this machine uses.
const (
	grpcPort    = 9090
	metricsPort = 8080
	probesPort  = 8081
)

// webhookName is the name by which members find all replicas.
const webhookName = "plimsoll-webhook"

// A Replica is a hub in a container, in the networks of the hub cluster and of all members. Its methods may be called
// concurrently.
type Replica struct {
	Name string

	release *Release
	yard    *yard
	caller  *caller

	mu      sync.Mutex
	metrics string
	probes  string
	conn    *grpc.ClientConn
}

// networks of a replica, and its names in each.
func (s *Site) networksOf(r *Replica) map[string]string {
	networks := map[string]string{"net-hub": r.Name}
	for _, m := range s.Members {
		networks["net-"+m.Name] = webhookName
	}
	return networks
}

// startReplica runs one and waits until it is ready and has all members.
func (s *Site) startReplica(ctx context.Context, of *Release) (*Replica, error) {
	s.started++
	r := &Replica{Name: fmt.Sprintf("hub-%d", s.started), release: of, yard: s.yard, caller: s.caller}
	request, err := of.request(r.Name, s.files)
	if err != nil {
		return nil, err
	}
	// In the engine's own network for this machine; nobody else finds it there.
	if err := s.yard.create(ctx, r.Name, request, grpcPort, metricsPort, probesPort); err != nil {
		return nil, err
	}
	for network, alias := range s.networksOf(r) {
		if err := s.yard.connect(ctx, network, r.Name, alias); err != nil {
			return nil, err
		}
	}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.replicas = append(s.replicas, r)
	s.mu.Unlock()
	return r, s.awaitReplica(ctx, r)
}

// startAgain starts a replica that does not run, and waits until it is ready and has all members.
func (s *Site) startAgain(ctx context.Context, r *Replica) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	return s.awaitReplica(ctx, r)
}

// awaitReplica waits until a replica is ready and has all members.
func (s *Site) awaitReplica(ctx context.Context, r *Replica) error {
	path := r.release.container.ReadinessProbe.HTTPGet.Path
	err := fleet.Await(ctx, r.Name+" to be ready", func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.probes+path, nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		return err
	}
	for _, m := range s.Members {
		if err := r.awaitState(ctx, m.Name, "Ready"); err != nil {
			return err
		}
	}
	return nil
}

// start starts its container, and asks the engine where this machine finds its ports: each start gives it others.
func (r *Replica) start(ctx context.Context) error {
	if err := r.yard.start(ctx, r.Name); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var problems []error
	for port, into := range map[uint16]*string{metricsPort: &r.metrics, probesPort: &r.probes} {
		var err error
		*into, err = r.yard.address(ctx, r.Name, port)
		problems = append(problems, err)
	}
	address, err := r.yard.address(ctx, r.Name, grpcPort)
	if err := errors.Join(append(problems, err)...); err != nil {
		return err
	}
	if r.conn != nil {
		_ = r.conn.Close()
	}
	r.conn, err = r.caller.dial(address)
	return err
}

// api is the connection to its API.
func (r *Replica) api() grpc.ClientConnInterface {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn
}

func (r *Replica) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		_ = r.conn.Close()
	}
}

// Samples are the metrics that the replica shows, by name.
func (r *Replica) Samples(ctx context.Context) (map[string][]fleet.Sample, error) {
	r.mu.Lock()
	address := r.metrics
	r.mu.Unlock()
	samples, err := fleet.OpenSamples(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", r.Name, err)
	}
	return samples, nil
}

// Reconciles is how many have ended on the replica; a standby's stay still.
func (r *Replica) Reconciles(ctx context.Context) (float64, error) {
	samples, err := r.Samples(ctx)
	return fleet.Sum(samples["plimsoll_reconcile_total"]), err
}

// acts reports whether the replica says that it may act.
func (r *Replica) acts(ctx context.Context) (bool, error) {
	samples, err := r.Samples(ctx)
	return fleet.Sum(samples["plimsoll_owner"]) == 1, err
}

// awaitState waits until the replica says that a member is in a state.
func (r *Replica) awaitState(ctx context.Context, member, want string) error {
	return fleet.Await(ctx, member+" to be "+want, func(ctx context.Context) (bool, error) {
		samples, err := r.Samples(ctx)
		if err != nil {
			return false, err
		}
		said := "nothing"
		for _, sample := range samples["plimsoll_member_state"] {
			if sample.Value != 1 || !sample.Has("member", member) {
				continue
			}
			if sample.Has("state", want) {
				return true, nil
			}
			said = sample.Labels
		}
		return false, fmt.Errorf("%s says %s", r.Name, said)
	})
}

// hubFiles writes the kubeconfig that replicas mount.
func (s *Site) hubFiles(ctx context.Context, dir string) error {
	s.files = filepath.Join(dir, "mounted")
	if err := os.MkdirAll(s.files, 0o755); err != nil {
		return err
	}
	token, err := s.Hub.token(ctx, "plimsoll-hub")
	if err != nil {
		return err
	}
	kubeconfig, err := s.Hub.kubeconfigFor(token)
	if err != nil {
		return err
	}
	return errors.Join(
		os.Chmod(dir, 0o755), os.Chmod(s.files, 0o755), // the container runs as another user
		writeFile(filepath.Join(s.files, "kubeconfig"), kubeconfig),
	)
}

// holder is the replica that holds the Lease: the name before the first "_" of its identity.
func holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return name
}

// leaseKey is where the Lease is that says who acts.
var leaseKey = client.ObjectKey{Namespace: fleet.Namespace, Name: "plimsoll-hub"}

// Owner waits until somebody but not holds the Lease.
func (s *Site) Owner(ctx context.Context, not *Replica) (owner *Replica, err error) {
	err = fleet.Await(ctx, "an owner", func(ctx context.Context) (bool, error) {
		var lease coordinationv1.Lease
		if err := s.Hub.Get(ctx, leaseKey, &lease); err != nil {
			return false, err
		}
		name := holder(&lease)
		for _, r := range s.Replicas() {
			if r.Name == name && r != not {
				owner = r
				return true, nil
			}
		}
		return false, fmt.Errorf("the Lease is held by %q", name)
	})
	return owner, err
}

// A caller is somebody who may order reconciles through the API.
type caller struct {
	cluster *Cluster
	token   string
	roots   *x509.CertPool
}

// operator is the account that orders.
const operator = "operator"

// newCaller makes an account with the role that the chart has for that, and waits for the authority that the hub publishes.
func newCaller(ctx context.Context, hubCluster *Cluster) (*caller, error) {
	meta := metav1.ObjectMeta{Namespace: fleet.Namespace, Name: operator}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: operator}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plimsoll-operator"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: fleet.Namespace, Name: operator}},
		},
	} {
		if err := hubCluster.Create(ctx, object); err != nil {
			return nil, err
		}
	}
	token, err := hubCluster.token(ctx, operator, "plimsoll")
	return &caller{cluster: hubCluster, token: token, roots: x509.NewCertPool()}, err
}

// trust reads the authority that the replicas have published.
func (c *caller) trust(ctx context.Context, hubCluster *Cluster) error {
	return fleet.Await(ctx, "the API's authority", func(ctx context.Context) (bool, error) {
		var published corev1.ConfigMap
		if err := hubCluster.Get(ctx, client.ObjectKey{Namespace: fleet.Namespace, Name: hub.APICAConfigMap}, &published); err != nil {
			return false, err
		}
		c.roots.AppendCertsFromPEM([]byte(published.Data["ca.crt"]))
		return published.Data["ca.crt"] != "", nil
	})
}

// dial prepares calls to a replica; the connection is made by the first of them.
func (c *caller) dial(address string) (*grpc.ClientConn, error) {
	security := &tls.Config{RootCAs: c.roots, ServerName: "plimsoll-api." + fleet.Namespace + ".svc", MinVersion: tls.VersionTLS12}
	return grpc.NewClient("passthrough:///"+address, grpc.WithNoProxy(), grpc.WithPerRPCCredentials(c),
		grpc.WithTransportCredentials(credentials.NewTLS(security)))
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (c *caller) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + c.token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (c *caller) RequireTransportSecurity() bool { return true }
