package cli

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Whoever looks at a fleet in an incident goes on seeing it when a replica of the hub restarts.
func TestTopGoesOnWhenTheHubDoesNotAnswerForAWhile(t *testing.T) {
	h := startHub(t)
	got := h.follow(t, func(times int, interrupt func()) {
		if times == 1 {
			h.mu.Lock()
			h.fail, h.fails = status.Error(codes.Unavailable, "this replica stops"), 1
			h.mu.Unlock()
			return
		}
		interrupt()
	}, "top", "--watch", "--interval", "1s")
	if got.code != exitOK || strings.Count(got.out, "CLUSTER") != 2 || !strings.Contains(got.err, "warning: this replica stops\n") {
		t.Errorf("exit code %d\n%s%s", got.code, got.out, got.err)
	}
}

// A hub that has never answered is a mistake in the command line, more likely than not.
func TestTopEndsWhenTheHubDoesNotAnswerAtAll(t *testing.T) {
	h := startHub(t)
	h.fail = status.Error(codes.Unavailable, "nobody there")
	if got := h.run(t, "top", "--watch"); got.code != exitUnavailable || got.out != "" {
		t.Errorf("%+v", got)
	}
}

func TestTopNamesTheMembersThatAnyOfItsListsLacks(t *testing.T) {
	got := startHub(t).run(t, "top")
	if got.code != exitOK || strings.Count(got.err, "warning: member us ") != 1 {
		t.Errorf("%+v", got)
	}
}
