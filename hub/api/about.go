package api

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Headers by which clients find out that versions or clocks differ. Answers have them where the caller is known and the call's
// metadata has aboutHeader: in all answers they would be a third of what a short call allocates.
const (
	aboutHeader   = "plimsoll-about" // in calls, with any value
	versionHeader = "plimsoll-version"
	timeHeader    = "plimsoll-time" // RFC 3339 with nanoseconds, in UTC
)

// about sets the header of an answer to the version that answers and the time of its clock, if the caller asks for it.
func about(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	// Calls that come by REST have no header of gRPC's, and to learn that costs more than most calls: the error prints the context.
	if len(metadata.ValueFromIncomingContext(ctx, aboutHeader)) > 0 && grpc.ServerTransportStreamFromContext(ctx) != nil {
		_ = grpc.SetHeader(ctx, metadata.Pairs(versionHeader, builtFrom(), timeHeader, time.Now().UTC().Format(time.RFC3339Nano)))
	}
	return next(ctx, request)
}

// builtFrom is the version of the module that the program was built from. It is read once: that parses a text of all dependencies.
var builtFrom = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
})
