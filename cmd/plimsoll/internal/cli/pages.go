package cli

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
)

// listAnswer is the answer of a list.
type listAnswer interface {
	proto.Message
	GetNextPageToken() string
	GetAsOf() *timestamppb.Timestamp
}

// allPages reads all pages of a list into one answer, which is as old as the oldest of them.
func allPages[P listAnswer](ctx context.Context, api *connection.Client, read func(ctx context.Context, token string) (P, error)) (P, error) {
	var all, nothing P
	err := api.EachPage(ctx, func(ctx context.Context, token string) (string, error) {
		one, err := read(ctx, token)
		if err != nil {
			return "", err
		}
		next, asOf := one.GetNextPageToken(), proto.CloneOf(oldest(all.GetAsOf(), one.GetAsOf()))
		if token == "" {
			all = one
		} else {
			proto.Merge(all, one)
		}
		answer := all.ProtoReflect()
		answer.Clear(answer.Descriptor().Fields().ByName("next_page_token"))
		if asOf != nil {
			answer.Set(answer.Descriptor().Fields().ByName("as_of"), protoreflect.ValueOfMessage(asOf.ProtoReflect()))
		}
		return next, nil
	})
	if err != nil {
		return nothing, err
	}
	return all, nil
}
