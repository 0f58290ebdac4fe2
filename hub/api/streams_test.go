package api

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
)

func TestTheWatchesOfAllCallersTogetherAreLimited(t *testing.T) {
	s := &streams{ofUser: map[string]int{}}
	var leave func()
	for i := range maxWatches {
		var err error
		if leave, err = s.enter(auth.Identity{User: fmt.Sprint("user ", i)}); err != nil {
			t.Fatalf("watch %d: %v", i, err)
		}
	}
	if _, err := s.enter(auth.Identity{User: "one more"}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one more: %v", err)
	}
	leave()
	if _, err := s.enter(auth.Identity{User: "one more"}); err != nil {
		t.Errorf("when another has left: %v", err)
	}
}

// held opens streams of a method that gRPC itself offers. They stay open until end is called, but for those that are refused.
func held(s *streams, method string) (open func(context.Context) error, end func()) {
	var all sync.WaitGroup
	over := make(chan struct{})
	open = func(ctx context.Context) error {
		refused, serves := make(chan error, 1), make(chan struct{})
		all.Go(func() {
			refused <- s.serve(nil, streamOf{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: method}, func(any, grpc.ServerStream) error {
				close(serves)
				<-over
				return nil
			})
		})
		select {
		case <-serves:
			return nil
		case err := <-refused:
			return err
		}
	}
	return open, func() {
		close(over)
		all.Wait()
	}
}

func TestTheReflectionStreamsOfOneCallerLeaveRoomForOthers(t *testing.T) {
	s := newStreams(options(t), access{}, mustMetrics(t), limits.NewPace(-1))
	open, end := held(s, reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName)
	defer end()
	bearing := func(token string) context.Context {
		return metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+token))
	}
	opened := 0
	for range 2 * maxStreams {
		if err := open(bearing("greedy")); err == nil {
			opened++
		} else if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	}
	if opened != maxStreams/2 {
		t.Errorf("one caller has %d of %d places", opened, maxStreams)
	}
	if err := open(bearing("modest")); err != nil {
		t.Errorf("another caller: %v", err)
	}
}
