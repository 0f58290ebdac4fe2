package cli

import (
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
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

// What fails and is not asked for is not counted.
func TestTopAsksForAllThatItCountsAsFailing(t *testing.T) {
	for value, name := range plimsollv1.ReconcileOutcome_name {
		l := &load{}
		l.count(&plimsollv1.ObjectState{LastOutcome: plimsollv1.ReconcileOutcome(value)}, now)
		asked := strings.Contains(topFilter, strconv.Quote(strings.TrimPrefix(name, "RECONCILE_OUTCOME_")))
		if counted := l.failing > 0; counted != asked {
			t.Errorf("%s: counted %t, asked for %t", name, counted, asked)
		}
	}
}

func TestTopNamesTheMembersThatAnyOfItsListsLacks(t *testing.T) {
	got := startHub(t).run(t, "top")
	if got.code != exitOK || strings.Count(got.err, "warning: member us ") != 1 {
		t.Errorf("%+v", got)
	}
}
