package inprocess

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
)

func TestEveryCallThatIsPacedHasATime(t *testing.T) {
	backend := newAPIBackend()
	site, err := newAPISite(t.Context(), backend, api.Backend{
		Members: backend, Workloads: backend, Objects: backend, Ownership: backend, Events: journal.New(journal.Limits{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	client := &apiClient{order: apiOrder{GRPC: site.grpc, Rate: 2000, For: 500 * time.Millisecond}}
	inside := site.calls.during()
	took, late, err := client.paced(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const calls = 1000 // and one first of each connection
	if times := inside(); len(took) != calls || len(late) != calls || len(times) != calls+pacedConns || slices.Min(took) <= 0 || slices.Min(times) <= 0 {
		t.Errorf("%d calls took at least %v, were sent late %d times and took %d times inside", len(took), slices.Min(took), len(late), len(times))
	}

	backend.records[apiMember(77)] = nil // so that one in a hundred calls is refused
	if _, _, err := client.paced(t.Context()); err == nil || !strings.Contains(err.Error(), "was not answered with its object") {
		t.Errorf("with a member of which nothing is known: %v", err)
	}
	if err := site.stop(); err != nil {
		t.Error(err)
	}
}
