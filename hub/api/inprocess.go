package api

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// inProcess is a connection to services of this process: a call goes through the interceptors and into the service, as it
// would through a gRPC server, and over no wire. REST calls take this way, so that nothing that holds on gRPC can be
// missing there.
type inProcess struct {
	methods   map[string]inProcessMethod
	intercept grpc.UnaryServerInterceptor
	streams   map[string]inProcessStreams
	stream    grpc.StreamServerInterceptor // nil: there are no streams
}

type inProcessStreams struct {
	service any
	handler grpc.StreamHandler
}

type inProcessMethod struct {
	service any
	handler grpc.MethodHandler
}

func newInProcess(s *services, chain []grpc.UnaryServerInterceptor) *inProcess {
	c := &inProcess{methods: map[string]inProcessMethod{}, streams: map[string]inProcessStreams{}, intercept: chained(chain)}
	s.register(c)
	return c
}

// RegisterService implements [grpc.ServiceRegistrar].
func (c *inProcess) RegisterService(desc *grpc.ServiceDesc, service any) {
	for _, method := range desc.Methods {
		c.methods["/"+desc.ServiceName+"/"+method.MethodName] = inProcessMethod{service: service, handler: method.Handler}
	}
	for _, stream := range desc.Streams {
		c.streams["/"+desc.ServiceName+"/"+stream.StreamName] = inProcessStreams{service: service, handler: stream.Handler}
	}
}

// Invoke implements [grpc.ClientConnInterface].
func (c *inProcess) Invoke(ctx context.Context, method string, request, answer any, _ ...grpc.CallOption) error {
	to, ok := c.methods[method]
	if !ok {
		return status.Errorf(codes.Unimplemented, "there is no method %s", method)
	}
	sent, _ := metadata.FromOutgoingContext(ctx)
	ctx = metadata.NewOutgoingContext(metadata.NewIncomingContext(ctx, sent), metadata.MD{})
	got, err := to.handler(to.service, ctx, func(into any) error { return copyMessage(into, request) }, c.intercept)
	if err != nil {
		return asStatus(err)
	}
	return copyMessage(answer, got)
}

// copyMessage fills into, which is empty.
func copyMessage(into, from any) error {
	target, ok := into.(proto.Message)
	source, fromOK := from.(proto.Message)
	if !ok || !fromOK {
		return status.Error(codes.Internal, "not a message")
	}
	proto.Merge(target, source)
	return nil
}

// chained makes one interceptor of many, the first outermost.
func chained(chain []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		for i := len(chain) - 1; i >= 0; i-- {
			intercept, next := chain[i], handler
			handler = func(ctx context.Context, request any) (any, error) { return intercept(ctx, request, info, next) }
		}
		return handler(ctx, request)
	}
}
