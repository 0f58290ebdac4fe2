package inprocess

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

// NewStream implements [grpc.ClientConnInterface], for streams that take one request.
func (c *Conn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	to, ok := c.streams[method]
	if !ok || c.stream == nil {
		return nil, status.Errorf(codes.Unimplemented, "there is no stream %s", method)
	}
	sent, _ := metadata.FromOutgoingContext(ctx)
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(metadata.NewIncomingContext(ctx, sent), metadata.MD{}))
	s := &stream{ctx: ctx, answers: make(chan any), ended: make(chan struct{})}
	s.serve = func() {
		defer cancel()
		defer close(s.ended)
		s.err = c.stream(to.service, servedStream{s}, &grpc.StreamServerInfo{FullMethod: method, IsServerStream: true}, to.handler)
	}
	return s, nil
}

// stream is a stream over no wire, as its client sees it. What is sent waits until it is read.
type stream struct {
	ctx     context.Context
	request any
	first   any // that was read before it was asked for
	answers chan any
	ended   chan struct{} // closed when err is set
	err     error
	serve   func()
}

// SendMsg implements [grpc.ClientStream].
func (s *stream) SendMsg(request any) error {
	s.request = request
	return nil
}

// CloseSend implements [grpc.ClientStream]: the request is there.
func (s *stream) CloseSend() error {
	go s.serve()
	return nil
}

// Header implements [grpc.ClientStream]: it waits for the first answer, so that a stream that is refused has an error and no
// answers.
func (s *stream) Header() (metadata.MD, error) {
	first, err := s.next()
	if err != nil {
		return nil, err
	}
	s.first = first
	return metadata.MD{}, nil
}

// RecvMsg implements [grpc.ClientStream].
func (s *stream) RecvMsg(into any) error {
	answer := s.first
	if s.first = nil; answer == nil {
		var err error
		if answer, err = s.next(); err != nil {
			return err
		}
	}
	return handOver(into, answer)
}

func (s *stream) next() (any, error) {
	select {
	case answer := <-s.answers:
		return answer, nil
	case <-s.ended:
		if s.err == nil {
			return nil, io.EOF
		}
		return nil, apierror.AsStatus(s.err)
	}
}

// Context implements [grpc.ClientStream].
func (s *stream) Context() context.Context { return s.ctx }

// Trailer implements [grpc.ClientStream].
func (s *stream) Trailer() metadata.MD { return nil }

// servedStream is the same stream as its server sees it.
type servedStream struct{ *stream }

// RecvMsg implements [grpc.ServerStream].
func (s servedStream) RecvMsg(into any) error {
	if s.request == nil {
		return io.EOF
	}
	request := s.request
	s.request = nil
	return handOver(into, request)
}

// SendMsg implements [grpc.ServerStream]. The message is copied: who sends it may keep it.
func (s servedStream) SendMsg(answer any) error {
	message, ok := answer.(proto.Message)
	if !ok {
		return apierror.Internal()
	}
	select {
	case s.answers <- message:
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// SetHeader implements [grpc.ServerStream].
func (servedStream) SetHeader(metadata.MD) error { return nil }

// SendHeader implements [grpc.ServerStream].
func (servedStream) SendHeader(metadata.MD) error { return nil }

// SetTrailer implements [grpc.ServerStream].
func (servedStream) SetTrailer(metadata.MD) {}
