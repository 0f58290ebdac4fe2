package gitops

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// A Hub runs in this process with the configuration and the account that Flux has brought into the hub cluster.
type Hub struct {
	Clusters plimsollv1.ClusterServiceClient
	Objects  plimsollv1.ObjectServiceClient

	conn  *grpc.ClientConn
	end   context.CancelFunc
	ended chan error
}

// StartHub starts one. What is different from its pod: addresses, and an API on loopback that asks for no token.
func (s *Site) StartHub(ctx context.Context, log io.Writer) (*Hub, error) {
	text, err := s.Config(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	environ := []string{
		"PLIMSOLL_HUB_REGISTRATIONNAMESPACE=" + fleet.Registrations, "POD_NAMESPACE=" + fleet.Namespace, "POD_NAME=plimsoll-hub-1", "POD_IP=127.0.0.1",
		"PLIMSOLL_WEBHOOK_BINDADDRESS=127.0.0.1", "PLIMSOLL_WEBHOOK_PORT=0", "PLIMSOLL_API_GRPCADDRESS=127.0.0.1:0",
		"PLIMSOLL_API_RESTADDRESS=127.0.0.1:0", "PLIMSOLL_API_UNAUTHENTICATED=true", "PLIMSOLL_PEER_ADDRESS=127.0.0.1:0",
		"PLIMSOLL_METRICS_ADDRESS=127.0.0.1:0", "PLIMSOLL_PROBES_ADDRESS=127.0.0.1:0",
	}
	config, err := config.Load(file, environ)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := s.Fleet.Hub.KubeconfigFor(ctx, fleet.HubUser)
	if err != nil {
		return nil, err
	}
	rest, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	made, err := hub.New(ctx, config, hub.WithController(webapp.Module()), hub.WithLog(hub.NewLog(log, config.Log.Level)), hub.WithEnvironment(environ), hub.WithHubCluster(rest))
	if err != nil {
		return nil, err
	}
	running, end := context.WithCancel(context.Background())
	h := &Hub{end: end, ended: make(chan error, 1)}
	go func() { h.ended <- made.Run(running) }()
	s.Fleet.Balancer.Add(made.Addresses().Webhook)
	h.conn, err = grpc.NewClient("passthrough:///"+made.Addresses().GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	h.Clusters, h.Objects = plimsollv1.NewClusterServiceClient(h.conn), plimsollv1.NewObjectServiceClient(h.conn)
	return h, nil
}

// Stop ends it in order.
func (h *Hub) Stop() error {
	_ = h.conn.Close()
	h.end()
	return <-h.ended
}

// AwaitMembers waits until all members are ready.
func (h *Hub) AwaitMembers(ctx context.Context, s *Site) error {
	for _, m := range s.Fleet.Members {
		err := fleet.Await(ctx, "member "+m.Name+" to be ready", func(ctx context.Context) (bool, error) {
			cluster, err := h.Cluster(ctx, m.Name)
			if err != nil || cluster.GetState() != plimsollv1.ClusterState_CLUSTER_STATE_READY {
				return false, err
			}
			_, err = m.WebhookURL(ctx)
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// AwaitCondition waits until the API gives a reason for a condition of a member.
func (h *Hub) AwaitCondition(ctx context.Context, member, condition, reason string) error {
	return fleet.Await(ctx, "condition "+condition+" of "+member+" to be "+reason, func(ctx context.Context) (bool, error) {
		cluster, err := h.Cluster(ctx, member)
		for _, is := range cluster.GetConditions() {
			if is.GetType() == condition {
				if is.GetReason() != reason {
					return false, fmt.Errorf("it is %s: %s", is.GetReason(), is.GetMessage())
				}
				return true, nil
			}
		}
		return false, err
	})
}

// Cluster is what the API says of a member.
func (h *Hub) Cluster(ctx context.Context, name string) (*plimsollv1.Cluster, error) {
	answer, err := h.Clusters.GetCluster(ctx, &plimsollv1.GetClusterRequest{Cluster: name})
	return answer.GetCluster(), err
}
