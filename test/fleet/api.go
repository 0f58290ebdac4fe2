package fleet

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// An API asks one replica; use Connect. It may be used by several goroutines at once.
type API struct {
	Clusters  plimsollv1.ClusterServiceClient
	Workloads plimsollv1.WorkloadServiceClient
	Objects   plimsollv1.ObjectServiceClient
	Events    plimsollv1.EventServiceClient

	conn *grpc.ClientConn
}

// Connect prepares calls to the replica's API; the connection is made by the first of them.
func (r *Replica) Connect() (*API, error) {
	conn, err := grpc.NewClient("passthrough:///"+r.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("API of hub %s: %w", r.Name, err)
	}
	return &API{
		Clusters:  plimsollv1.NewClusterServiceClient(conn),
		Workloads: plimsollv1.NewWorkloadServiceClient(conn),
		Objects:   plimsollv1.NewObjectServiceClient(conn),
		Events:    plimsollv1.NewEventServiceClient(conn),
		conn:      conn,
	}, nil
}

// Close ends the connection.
func (a *API) Close() { _ = a.conn.Close() }

// Cluster is the state of one member.
func (a *API) Cluster(ctx context.Context, member string) (*plimsollv1.Cluster, error) {
	response, err := a.Clusters.GetCluster(ctx, &plimsollv1.GetClusterRequest{Cluster: member})
	if err != nil {
		return nil, err
	}
	return response.GetCluster(), nil
}

// joinTimeout is how long members may take to join; they take seconds.
const joinTimeout = 90 * time.Second

// AwaitMembers waits until members are ready and owned, and have the webhook installed.
func (a *API) AwaitMembers(ctx context.Context, members ...*Member) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for _, m := range members {
		err := Await(ctx, "member "+m.Name+" to be ready", func(ctx context.Context) (bool, error) {
			cluster, err := a.Cluster(ctx, m.Name)
			if err != nil {
				return false, err
			}
			if cluster.GetState() != plimsollv1.ClusterState_CLUSTER_STATE_READY || cluster.GetOwner() == "" {
				return false, fmt.Errorf("it is %s, owned by %q: %s: %s", cluster.GetState(), cluster.GetOwner(), cluster.GetReason(), cluster.GetMessage())
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

// WebhookURL is where the member's API server sends pods; an error when the hub has not said yet.
func (m *Member) WebhookURL(ctx context.Context) (*url.URL, error) {
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	if err := m.Client().Get(ctx, client.ObjectKey{Name: webhook.ConfigurationName}, &configuration); err != nil {
		return nil, err
	}
	if len(configuration.Webhooks) == 0 || configuration.Webhooks[0].ClientConfig.URL == nil {
		return nil, fmt.Errorf("member %s: its webhook configuration is empty", m.Name)
	}
	return url.Parse(*configuration.Webhooks[0].ClientConfig.URL)
}

// Workload is what the hub says of a workload.
func (a *API) Workload(ctx context.Context, w *Workload) (*plimsollv1.Workload, error) {
	response, err := a.Workloads.GetWorkload(ctx, &plimsollv1.GetWorkloadRequest{
		Cluster: w.Member.Name, Namespace: w.Namespace, Kind: w.Kind, Name: w.Name,
	})
	if err != nil {
		return nil, fmt.Errorf("ask the hub for %s: %w", w, err)
	}
	return response.GetWorkload(), nil
}

// operationWait is how long one question for an operation stays open.
const operationWait = 10 * time.Second

// Reconcile orders a reconcile of a workload and waits until it has ended: whatever the hub knew before the call, it has
// acted on after it.
func (a *API) Reconcile(ctx context.Context, w *Workload) error {
	ordered, err := a.Workloads.RequeueWorkload(ctx, &plimsollv1.RequeueWorkloadRequest{
		Cluster: w.Member.Name, Namespace: w.Namespace, Kind: w.Kind, Name: w.Name,
	})
	if err != nil {
		return fmt.Errorf("order a reconcile of %s: %w", w, err)
	}
	operation := ordered.GetOperation()
	for {
		switch operation.GetState() {
		case plimsollv1.OperationState_OPERATION_STATE_DONE:
			return nil
		case plimsollv1.OperationState_OPERATION_STATE_FAILED, plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED:
			return fmt.Errorf("reconcile of %s: %s: %s", w, operation.GetState(), operation.GetMessage())
		}
		answer, err := a.Objects.GetOperation(ctx, &plimsollv1.GetOperationRequest{Operation: operation.GetId(), Wait: durationpb.New(operationWait)})
		if err != nil {
			return fmt.Errorf("follow a reconcile of %s: %w", w, err)
		}
		operation = answer.GetOperation()
	}
}

// Settle waits until the hub itself sees all replicas ready and converged, and has then looked once more: what it wanted
// to do about the workload, it has done.
func (a *API) Settle(ctx context.Context, w *Workload, replicas int) error {
	seen := func(ctx context.Context) (bool, error) {
		known, err := a.Workload(ctx, w)
		if err != nil {
			return false, err
		}
		p := known.GetPlacement()
		if known.GetState() != plimsollv1.WorkloadState_WORKLOAD_STATE_CONVERGED || p.GetPending() > 0 ||
			int(p.GetSpotActual()+p.GetOnDemandActual()) != replicas || int(p.GetReplicas()) != replicas {
			return false, fmt.Errorf("the hub says %s: %s (%v)", known.GetState(), p.GetReason(), p)
		}
		return true, nil
	}
	if err := Await(ctx, w.String()+" to be converged", seen); err != nil {
		return err
	}
	if err := a.Reconcile(ctx, w); err != nil {
		return err
	}
	return Await(ctx, w.String()+" to stay converged", seen)
}
