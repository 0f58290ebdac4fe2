package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// lists are what a list answers, one after the other; then it fails.
type lists struct {
	answers [][]*plimsollv1.Controller
	missing [][]*plimsollv1.UnreachableMember // of each answer
	n       int
}

var errNoMore = errors.New("no more answers")

func (l *lists) read(context.Context) ([]*plimsollv1.Controller, []*plimsollv1.UnreachableMember, error) {
	if l.n == len(l.answers) {
		return nil, nil, errNoMore
	}
	l.n++
	return l.answers[l.n-1], l.missing[l.n-1], nil
}

func TestWhatHasNoWatchIsListedAgainAndItsChangesArePrinted(t *testing.T) {
	one := &plimsollv1.Controller{Cluster: "eu", Name: "webapp", Queued: 1}
	more := proto.CloneOf(one)
	more.Queued = 2
	gap := []*plimsollv1.UnreachableMember{{Member: "us", Reason: "its owner\x1b does not answer"}}
	for format, want := range map[string]string{
		formatTable: "eu/webapp 1\neu/webapp 2\neu/webapp 2  REMOVED\n",
		formatName:  "controller/eu/webapp\ncontroller/eu/webapp\ncontroller/eu/webapp\n",
		formatJSON: `{"controller":{"cluster":"eu","name":"webapp","queued":1},"type":"WATCH_EVENT_TYPE_PUT"}` + "\n" +
			`{"controller":{"cluster":"eu","name":"webapp","queued":2},"type":"WATCH_EVENT_TYPE_PUT"}` + "\n" +
			`{"controller":{"cluster":"eu","name":"webapp","queued":2},"type":"WATCH_EVENT_TYPE_REMOVED"}` + "\n",
		formatYAML: "controller:\n  cluster: eu\n  name: webapp\n  queued: 1\ntype: WATCH_EVENT_TYPE_PUT\n---\n" +
			"controller:\n  cluster: eu\n  name: webapp\n  queued: 2\ntype: WATCH_EVENT_TYPE_PUT\n---\n" +
			"controller:\n  cluster: eu\n  name: webapp\n  queued: 2\ntype: WATCH_EVENT_TYPE_REMOVED\n---\n",
		formatJSONPath + "={.controller.queued}": "1\n2\n2\n",
	} {
		answers := &lists{
			answers: [][]*plimsollv1.Controller{{one}, {one}, {more}, {}, {more}, {}}, // the fourth may lack it because a member does not answer
			missing: [][]*plimsollv1.UnreachableMember{nil, nil, nil, gap, nil, nil},
		}
		var printed, warned bytes.Buffer
		out := &output{format: format}
		if err := out.parse(); err != nil {
			t.Fatal(err)
		}
		p := polled[*plimsollv1.Controller]{env: Environment{Out: &printed, Err: &warned}, out: out, kind: "controller", read: answers.read, name: controllerName}
		p.line = func(c *plimsollv1.Controller) string {
			return fmt.Sprintf("%s/%s %d", c.GetCluster(), c.GetName(), c.GetQueued())
		}
		if err := p.follow(t.Context(), time.Microsecond); !errors.Is(err, errNoMore) {
			t.Errorf("%s: %v", format, err)
		}
		got := strings.ReplaceAll(strings.ReplaceAll(printed.String(), `": `, `":`), `, "`, `,"`) // protojson's spacing differs from build to build
		if got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", format, got, want)
		}
		if text := warned.String(); strings.Count(text, "us") != 1 || strings.Contains(text, "\x1b") {
			t.Errorf("%s: %q", format, text)
		}
	}
}

// printed is where a command prints; then is called after each time, with how often it was.
type printed struct {
	bytes.Buffer
	times int
	then  func(times int)
}

func (p *printed) Write(text []byte) (int, error) {
	defer func() {
		p.times++
		p.then(p.times)
	}()
	return p.Buffer.Write(text)
}

// follow runs a command that goes on until it is interrupted; then may do so, after each time that the command has printed something.
func (h *hub) follow(t *testing.T, then func(times int, interrupt func()), args ...string) result {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, errs := &printed{then: func(times int) { then(times, interrupt) }}, &bytes.Buffer{}
	code := Run(ctx, append(append([]string{"plimsoll"}, args...), "--server", h.address, "--insecure-plaintext"), Environment{
		Out: out, Err: errs, Getenv: func(string) string { return "" }, Now: func() time.Time { return now },
	})
	return result{code: code, out: out.String(), err: errs.String()}
}

// atOnce interrupts a command that has printed something.
func atOnce(_ int, interrupt func()) { interrupt() }

func TestListsWithoutAWatchAreFollowedUntilInterrupted(t *testing.T) {
	h := startHub(t)
	for args, want := range map[string]string{
		"get operations --watch":                  "w.prod-eu.1  prod-eu  shop/cart  Pending  it waits for a worker\n",
		"get controllers --watch":                 "prod-eu  deployment-spot  objects ",
		"get controllers --watch -o name":         "controller/prod-eu/deployment-spot\n",
		"get operations --watch -n shop -o name":  "operation/w.prod-eu.1\n",
		"get operations -w --filter true -o=yaml": "operation:\n",
		"get operations --watch --order-by x":     "",
		"get controllers --watch --insecure-tls":  "",
	} {
		got := h.follow(t, atOnce, strings.Fields(args)...)
		if wanted := map[bool]int{true: exitOK, false: exitUsage}[want != ""]; got.code != wanted || !strings.HasPrefix(got.out, want) {
			t.Errorf("plimsoll %s: exit code %d\n%s%s", args, got.code, got.out, got.err)
		}
	}
}
