package inprocess

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

// Conn is a connection to services of this process. REST calls take this way, so that nothing that holds on gRPC can be missing there.
type Conn struct {
	methods   map[string]unary
	intercept grpc.UnaryServerInterceptor
	streams   map[string]streams
	stream    grpc.StreamServerInterceptor // nil: there are no streams
}

type streams struct {
	service any
	handler grpc.StreamHandler
}

type unary struct {
	service any
	handler grpc.MethodHandler
}

// New creates a connection on which services are still to be registered. stream nil: it refuses streams.
func New(chain []grpc.UnaryServerInterceptor, stream grpc.StreamServerInterceptor) *Conn {
	return &Conn{methods: map[string]unary{}, streams: map[string]streams{}, intercept: Chain(chain), stream: stream}
}

// RegisterService implements [grpc.ServiceRegistrar].
func (c *Conn) RegisterService(desc *grpc.ServiceDesc, service any) {
	for _, method := range desc.Methods {
		c.methods["/"+desc.ServiceName+"/"+method.MethodName] = unary{service: service, handler: method.Handler}
	}
	for _, stream := range desc.Streams {
		c.streams["/"+desc.ServiceName+"/"+stream.StreamName] = streams{service: service, handler: stream.Handler}
	}
}

// Invoke implements [grpc.ClientConnInterface].
func (c *Conn) Invoke(ctx context.Context, method string, request, answer any, _ ...grpc.CallOption) error {
	to, ok := c.methods[method]
	if !ok {
		return status.Errorf(codes.Unimplemented, "there is no method %s", method)
	}
	sent, _ := metadata.FromOutgoingContext(ctx)
	ctx = metadata.NewOutgoingContext(metadata.NewIncomingContext(ctx, sent), metadata.MD{})
	got, err := to.handler(to.service, ctx, func(into any) error { return handOver(into, request) }, c.intercept)
	if err != nil {
		return apierror.AsStatus(err)
	}
	return handOver(answer, got)
}

// handOver fills into, which is empty, with what is in from. Nobody changes that any more, so what is below both is the same and a page
// of workloads is not copied.
func handOver(into, from any) error {
	target, ok := into.(proto.Message)
	source, fromOK := from.(proto.Message)
	if !ok || !fromOK || target.ProtoReflect().Descriptor() != source.ProtoReflect().Descriptor() {
		return status.Error(codes.Internal, "not a message, or another one")
	}
	to := target.ProtoReflect()
	source.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.Set(field, value)
		return true
	})
	return nil
}

// Chain makes one interceptor of many, the first outermost.
func Chain(chain []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		for i := len(chain) - 1; i >= 0; i-- {
			intercept, next := chain[i], handler
			handler = func(ctx context.Context, request any) (any, error) { return intercept(ctx, request, info, next) }
		}
		return handler(ctx, request)
	}
}
