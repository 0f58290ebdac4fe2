package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// WatchClusters sends what the test's script says.
func (h *hub) WatchClusters(request *plimsollv1.WatchClustersRequest, stream grpc.ServerStreamingServer[plimsollv1.WatchClustersResponse]) error {
	h.mu.Lock()
	script := h.watches[0]
	if len(h.watches) > 1 {
		h.watches = h.watches[1:]
	}
	h.filters = append(h.filters, request.GetFilter())
	h.mu.Unlock()
	return script(stream)
}

// watchScript is what one watch of clusters does.
type watchScript func(stream grpc.ServerStreamingServer[plimsollv1.WatchClustersResponse]) error

// shows sends members as the existing ones, and ends with err; nil: it goes on until the caller ends it.
func shows(err error, members ...*plimsollv1.Cluster) watchScript {
	return func(stream grpc.ServerStreamingServer[plimsollv1.WatchClustersResponse]) error {
		for _, member := range members {
			if err := stream.Send(&plimsollv1.WatchClustersResponse{Type: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT, Cluster: member}); err != nil {
				return err
			}
		}
		if err := stream.Send(&plimsollv1.WatchClustersResponse{Type: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED}); err != nil {
			return err
		}
		if err == nil {
			<-stream.Context().Done()
		}
		return err
	}
}

// memberAt is a member about whose registration the hub says this.
func memberAt(version string, state plimsollv1.ClusterState, conditions ...*plimsollv1.Condition) *plimsollv1.Cluster {
	return &plimsollv1.Cluster{Name: "prod-eu", RegistrationVersion: version, State: state, Reason: "Reason", Message: "what it is", Conditions: conditions}
}

func is(kind, status, reason, message string) *plimsollv1.Condition {
	return &plimsollv1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

const (
	ready       = plimsollv1.ClusterState_CLUSTER_STATE_READY
	unreachable = plimsollv1.ClusterState_CLUSTER_STATE_UNREACHABLE
	refusedNow  = plimsollv1.ClusterState_CLUSTER_STATE_REFUSED
)

func TestAMemberIsReadyWithTheRegistrationThatWasWritten(t *testing.T) {
	accepted, trying := is("Accepted", "True", "Accepted", ""), is("Accepted", "Unknown", "Proving", "")
	rejected := is("Accepted", "False", "ServerNotAllowed", "127.0.0.1 is not allowed")
	for name, c := range map[string]struct {
		member         *plimsollv1.Cluster
		ready, refused bool
		says           []string
	}{
		"it is":                           {memberAt("12", ready, accepted), true, false, nil},
		"with a later one":                {memberAt("100", ready, accepted), true, false, nil},
		"an older hub":                    {memberAt("", ready, accepted), true, false, nil},
		"the hub does not know it":        {nil, false, false, []string{"prod-eu is registered", "has not read its registration"}},
		"with an earlier one":             {memberAt("9", ready, accepted), false, false, []string{"has not read its registration"}},
		"the earlier one is refused":      {memberAt("9", refusedNow, rejected), false, false, nil},
		"the new one is tried":            {memberAt("12", ready, trying), false, false, []string{"condition Accepted is Unknown, Proving"}},
		"the new one is refused":          {memberAt("12", refusedNow, rejected), false, true, []string{"it is Refused: condition Accepted is False, ServerNotAllowed: 127.0.0.1 is not allowed"}},
		"it runs on with the earlier one": {memberAt("12", ready, rejected), false, false, []string{"condition Accepted is False"}},
		"credentials are refused":         {memberAt("12", refusedNow, accepted, is("Reachable", "False", "Unauthorized", "401")), false, false, []string{"condition Reachable is False, Unauthorized: 401"}},
		"it does not answer": {
			memberAt("12", unreachable, accepted, is("Warm", "Unknown", "Warming", ""), is("Reachable", "False", "ConnectionRefused", "dial")), false, false,
			[]string{"prod-eu is registered, but not ready: it is Unreachable: condition Reachable is False, ConnectionRefused: dial"},
		},
		"no condition says why": {memberAt("12", unreachable, accepted), false, false, []string{"it is Unreachable, Reason: what it is"}},
	} {
		gotReady, gotRefused := joined(c.member, "12")
		if gotReady != c.ready || gotRefused != c.refused {
			t.Errorf("%s: ready %v, refused %v", name, gotReady, gotRefused)
		}
		err := notReady("prod-eu", c.member, "12")
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is not in %q", name, part, err)
			}
		}
		if code, _, _ := judge(err); code != exitOperation {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
}

// following is a wait of register for prod-eu at the fake hub.
func (h *hub) following(ctx context.Context, t *testing.T) (*followed, error) {
	t.Helper()
	conn := connection.New(func(key string) string { return map[string]string{"PLIMSOLL_TOKEN": canary}[key] })
	command := &cobra.Command{}
	conn.AddFlags(command)
	if err := command.ParseFlags([]string{"--api", h.address, "--insecure-plaintext"}); err != nil {
		t.Fatal(err)
	}
	r := registering{wait: true, api: conn, timeout: time.Minute}
	return r.follow(ctx, &enroll.Context{}, "prod-eu", "prod-us")
}

func TestTheWaitGoesOnWhenTheWatchBreaksOff(t *testing.T) {
	h := startHub(t)
	accepted := is("Accepted", "True", "Accepted", "")
	h.watches = []watchScript{
		shows(status.Error(codes.Unavailable, "this replica stops"), memberAt("12", unreachable, accepted)), shows(nil, memberAt("12", ready, accepted)),
	}
	f, err := h.following(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	defer f.stop()
	if err := f.ready(t.Context(), "prod-eu", "12"); err != nil {
		t.Error(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.filters) != 2 || h.filters[0] != `cluster.name in ["prod-eu", "prod-us"]` {
		t.Errorf("watched with %q", h.filters)
	}
}

// unread is the error of a replica that has just started.
func unread(t *testing.T) error {
	t.Helper()
	is, err := status.New(codes.Unavailable, "this replica has just started").WithDetails(&errdetails.ErrorInfo{Reason: "MEMBERS_UNREAD"})
	if err != nil {
		t.Fatal(err)
	}
	return is.Err()
}

func TestTheWaitBeginsWhenAReplicaHasReadTheRegistrations(t *testing.T) {
	h := startHub(t)
	starts := func(grpc.ServerStreamingServer[plimsollv1.WatchClustersResponse]) error { return unread(t) }
	h.watches = []watchScript{starts, shows(nil, memberAt("12", ready, is("Accepted", "True", "Accepted", "")))}
	f, err := h.following(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	defer f.stop()
	if err := f.ready(t.Context(), "prod-eu", "12"); err != nil {
		t.Error(err)
	}
}

func TestTheWaitForAReplicaThatReadsRegistrationsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, limit := range map[string]time.Duration{"with its time": 10 * time.Second, "with its context": 0} {
			asked := 0
			f := &followed{open: func(context.Context) (*memberWatch, error) {
				asked++
				return nil, unread(t)
			}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			began := time.Now()
			_, err := f.begin(ctx, limit)
			cancel()
			want := cmp.Or(limit, time.Minute)
			if took := time.Since(began); status.Code(err) != codes.Unavailable || took != want || asked < int(want/reopenAfter) {
				t.Errorf("%s: asked %d times in %s: %v", name, asked, took, err)
			}
		}
	})
}

func TestTheWaitEnds(t *testing.T) {
	rejected := is("Accepted", "False", "ServerNotAllowed", "not allowed")
	for name, c := range map[string]struct {
		watch watchScript
		says  string
	}{
		"when the Secret is refused":   {shows(nil, memberAt("12", refusedNow, rejected)), "condition Accepted is False, ServerNotAllowed"},
		"when the rights are revoked":  {shows(status.Error(codes.PermissionDenied, "you may not list clusters"), memberAt("12", unreachable)), "you may not list clusters"},
		"when the time is over":        {shows(nil, memberAt("12", unreachable, is("Reachable", "False", "Timeout", "slow"))), "condition Reachable is False, Timeout: slow"},
		"when nobody knows the member": {shows(nil), "has not read its registration"},
	} {
		t.Run(name, func(t *testing.T) {
			h := startHub(t)
			h.watches = []watchScript{c.watch}
			f, err := h.following(t.Context(), t)
			if err != nil {
				t.Fatal(err)
			}
			defer f.stop()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if strings.Contains(name, "time") || strings.Contains(name, "nobody") {
				over, stop := context.WithTimeout(ctx, 50*time.Millisecond)
				defer stop()
				ctx = over
			}
			if err := f.ready(ctx, "prod-eu", "12"); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
	h := startHub(t)
	h.watches = []watchScript{shows(nil)}
	f, err := h.following(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	defer f.stop()
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.ready(interrupted, "prod-eu", "12"); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// What would keep the command from waiting is found out before it changes anything.
func TestWithoutTheAPINothingIsWaitedFor(t *testing.T) {
	h := startHub(t)
	h.watches = []watchScript{func(grpc.ServerStreamingServer[plimsollv1.WatchClustersResponse]) error {
		return status.Error(codes.PermissionDenied, "you may not list clusters")
	}}
	if _, err := h.following(t.Context(), t); err == nil || !strings.Contains(err.Error(), "nothing is changed") || !strings.Contains(err.Error(), "you may not list") {
		t.Errorf("%v", err)
	}
	if code, _, _ := judge(func() error { _, err := h.following(t.Context(), t); return err }()); code != exitDenied {
		t.Errorf("exit code %d", code)
	}
	if got := plimsoll(t, nil, "register", "prod-eu", "--wait", "--dry-run"); got.code != exitUsage {
		t.Errorf("%+v", got)
	}
}

func TestTheReportTellsWhoIsReady(t *testing.T) {
	var out strings.Builder
	late := notReady("c", memberAt("12", unreachable, is("Reachable", "False", "Timeout", "slow")), "12")
	err := reportMany(&out, []*candidate{{name: "a", ready: true}, {name: "b"}, {name: "c", late: late}})
	if code, text, _ := judge(err); code != exitOperation || text != "1 of 3 members are registered but not ready" {
		t.Errorf("%d, %s", code, text)
	}
	for _, row := range []string{"a        ready  ", "b        registered", "c        not ready", "condition Reachable is False, Timeout: slow"} {
		if !strings.Contains(out.String(), row) {
			t.Errorf("%q is not in\n%s", row, out.String())
		}
	}
	if err := reportMany(&out, []*candidate{{name: "a", outcome: enroll.Outcome{Warnings: []string{"one", "two"}}}}); err != nil || !strings.Contains(out.String(), "warning: one; two") {
		t.Errorf("%v: the warnings are not in\n%s", err, out.String())
	}
	out.Reset()
	err = reportMany(&out, []*candidate{{name: "a", err: errors.New("no")}, {name: "c", late: late, outcome: enroll.Outcome{Warnings: []string{"three"}}}})
	if !strings.Contains(out.String(), late.Error()+"; warning: three") {
		t.Errorf("what is not ready in time has no warning: %s", out.String())
	}
	if code, text, _ := judge(err); code != exitFailed || !strings.Contains(text, "1 of 2 members are not registered, and 1 are registered but not ready") {
		t.Errorf("%d, %s", code, text)
	}
}
