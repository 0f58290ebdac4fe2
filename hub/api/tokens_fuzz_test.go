package api

import (
	"log/slog"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
)

// FuzzOperationID looks for an id that is read as another one than it writes, or refused with anything but an invalid argument.
func FuzzOperationID(f *testing.F) {
	for _, text := range []string{"w.prod.shop.id-0", "o.prod.id-1", "m.prod.shop.4f6c", "x.prod.id", "w..shop.id", "...", "m.prod.."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := parseOperationID(text)
		if err != nil {
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if id.String() != text || id.member == "" || id.local == "" || id.resource == "" {
			t.Errorf("%q is read as %+v and written as %q", text, id, id.String())
		}
	})
}

// FuzzResumeToken looks for a token that panics, is refused with anything but an invalid argument, or goes on behind what was never sent.
func FuzzResumeToken(f *testing.F) {
	for _, text := range []string{"eyJxIjoiIiwiZSI6IiIsInIiOjF9", "!", "bnVsbA", "e30", "eyJyIjotMX0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" {
			return
		}
		w := watching[*plimsollv1.Cluster, *plimsollv1.WatchClustersResponse]{token: text, query: []string{"clusters", "", "alice"}}
		w.feed = newFeed(&core{log: slog.New(slog.DiscardHandler), members: &replica{}}, func(c *plimsollv1.Cluster) lists.Position { return lists.Position{c.GetName()} }, nil)
		reason, err := w.resume(t.Context())
		if err != nil && status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && reason == "" {
			t.Errorf("%q is no token of this feed, and is gone on behind", text)
		}
	})
}
