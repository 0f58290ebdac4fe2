package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// told is where a command prints; then is called after each time, with how often it was.
type told struct {
	bytes.Buffer
	times int
	then  func(times int)
}

func (o *told) Write(text []byte) (int, error) {
	defer func() {
		o.times++
		o.then(o.times)
	}()
	return o.Buffer.Write(text)
}

// Whoever looks at a fleet in an incident goes on seeing it when a replica of the hub restarts.
func TestTopGoesOnWhenTheHubDoesNotAnswerForAWhile(t *testing.T) {
	h := startHub(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out := &told{then: func(times int) {
		if times == 1 {
			h.mu.Lock()
			h.fail, h.fails = status.Error(codes.Unavailable, "this replica stops"), 1
			h.mu.Unlock()
			return
		}
		interrupt()
	}}
	errs := &bytes.Buffer{}
	code := Run(ctx, []string{"plimsoll", "top", "--watch", "--interval", "1s", "--server", h.address, "--insecure-plaintext"}, Environment{
		Out: out, Err: errs, Getenv: func(string) string { return "" }, Now: func() time.Time { return now },
	})
	if code != exitOK || strings.Count(out.String(), "CLUSTER") != 2 || !strings.Contains(errs.String(), "warning: this replica stops\n") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
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
