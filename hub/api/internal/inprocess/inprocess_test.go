package inprocess

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// workloads answers every list with the same message.
type workloads struct {
	plimsollv1.UnimplementedWorkloadServiceServer
	asked  *plimsollv1.ListWorkloadsRequest
	answer *plimsollv1.ListWorkloadsResponse
}

func (w *workloads) ListWorkloads(_ context.Context, request *plimsollv1.ListWorkloadsRequest) (*plimsollv1.ListWorkloadsResponse, error) {
	w.asked = request
	return w.answer, nil
}

func TestAPageIsHandedOverAndNotCopied(t *testing.T) {
	service := &workloads{answer: &plimsollv1.ListWorkloadsResponse{Workloads: []*plimsollv1.Workload{{Name: "cart"}, {Name: "shop"}}, NextPageToken: "more"}}
	conn := New([]grpc.UnaryServerInterceptor{pass}, nil)
	plimsollv1.RegisterWorkloadServiceServer(conn, service)
	got, err := plimsollv1.NewWorkloadServiceClient(conn).ListWorkloads(t.Context(), &plimsollv1.ListWorkloadsRequest{Cluster: "prod", PageSize: 2})
	switch {
	case err != nil:
		t.Fatal(err)
	case service.asked.GetCluster() != "prod" || service.asked.GetPageSize() != 2:
		t.Errorf("the service was asked %v", service.asked)
	case len(got.GetWorkloads()) != 2 || got.GetNextPageToken() != "more":
		t.Errorf("the answer is %v", got)
	case got.GetWorkloads()[1] != service.answer.GetWorkloads()[1]:
		t.Error("the workloads of a page were copied")
	}
}

func TestAnAnswerOfAnotherTypeIsAnError(t *testing.T) {
	err := handOver(&plimsollv1.ListWorkloadsResponse{}, &plimsollv1.ListClustersResponse{})
	if status.Code(err) != codes.Internal {
		t.Error(err)
	}
}

func pass(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	return next(ctx, request)
}
