package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	connections = 8
	warmup      = 2 * time.Second
	// manyCalls is more than one connection is likely to carry.
	manyCalls = 100_000
)

// A load is what a server is asked: calls in turn, one at a time on each of the connections, as fast as they are answered.
// The requests are written by hand, because the generator takes its share of the machine's cores.
type load struct {
	address  string
	tls      *tls.Config
	calls    []*call
	duration time.Duration // after the warm-up, which counts for nothing
	keep     bool          // keep the answers, those to the warm-up included
	first    int           // number of the first call, so that the UIDs of two loads differ
	rate     int           // calls a second on all connections together; 0: as fast as they are answered
}

// A loaded server has answered so much.
type loadResult struct {
	latencies []time.Duration // sorted
	elapsed   time.Duration
	answers   []answer
}

func (r *loadResult) perSecond() float64 { return float64(len(r.latencies)) / r.elapsed.Seconds() }

// run opens the connections and sends. No garbage is collected here meanwhile: that would be measured as the server's.
func (l *load) run(ctx context.Context) (*loadResult, error) {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	parts := make([]loadResult, connections)
	group, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for i := range parts {
		group.Go(func() error { return l.connection(ctx, i, begun, &parts[i]) })
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("load on %s: %w", l.address, err)
	}
	result := &loadResult{elapsed: l.duration}
	for _, part := range parts {
		result.latencies = append(result.latencies, part.latencies...)
		result.answers = append(result.answers, part.answers...)
	}
	if len(result.latencies) == 0 {
		return nil, fmt.Errorf("load on %s: %w", l.address, errNothingAnswered)
	}
	slices.Sort(result.latencies)
	return result, nil
}

// connection sends on one connection until the time is over.
func (l *load) connection(ctx context.Context, number int, begun time.Time, into *loadResult) error {
	dialer := &tls.Dialer{Config: l.tls}
	conn, err := dialer.DialContext(ctx, "tcp4", l.address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	from, until := begun.Add(warmup), begun.Add(warmup+l.duration)
	if err := conn.SetDeadline(until.Add(10 * time.Second)); err != nil {
		return err
	}
	calls := l.ownCalls()
	answers, bodies := bufio.NewReaderSize(conn, 16<<10), shelf{keep: l.keep}
	// Growing takes time that would be counted.
	into.latencies = make([]time.Duration, 0, manyCalls)
	if l.keep {
		into.answers = make([]answer, 0, manyCalls)
	}
	for n := 0; ; n++ {
		// Each connection begins elsewhere, so that they do not ask about one owner all at once.
		c := calls[(n+number*len(calls)/connections)%len(calls)]
		requestUID(c.bytes[c.uidAt:c.uidAt+uidLength], number, l.first+n)
		sent := l.turn(begun, number, n)
		if _, err := conn.Write(c.bytes); err != nil {
			return err
		}
		body, err := readResponse(answers, &bodies)
		if err != nil {
			return err
		}
		received := time.Now()
		if l.keep {
			into.answers = append(into.answers, answer{owner: c.owner, connection: number, number: l.first + n, body: body})
		}
		switch {
		case received.After(until):
			return nil
		case sent.After(from):
			into.latencies = append(into.latencies, received.Sub(sent))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// turn waits until a connection's n-th call is due and returns when that was: a call that had to wait for the one before it
// counts from when it should have been sent. Without a rate it is due at once.
func (l *load) turn(begun time.Time, number, n int) time.Time {
	if l.rate == 0 {
		return time.Now()
	}
	due := begun.Add(time.Duration(n*connections+number) * time.Second / time.Duration(l.rate))
	time.Sleep(time.Until(due))
	return due
}

// ownCalls are copies for one connection, because the UIDs are written into them.
func (l *load) ownCalls() []call {
	own := make([]call, len(l.calls))
	for i, c := range l.calls {
		own[i] = call{owner: c.owner, bytes: bytes.Clone(c.bytes), uidAt: c.uidAt}
	}
	return own
}

var (
	statusOK      = []byte("HTTP/1.1 200 ")
	lengthHeader  = []byte("content-length")
	errChunked    = errors.New("the answer has no Content-Length")
	errNoResponse = errors.New("the answer is not 200 OK")
	// errNothingAnswered: no call of a load was answered in its time.
	errNothingAnswered = errors.New("nothing was answered")
)

// A shelf is where bodies are put, many in a piece of memory; without keep, each in place of the one before.
type shelf struct {
	keep bool
	free []byte
}

func (s *shelf) room(length int) []byte {
	if len(s.free) < length {
		s.free = make([]byte, max(length, 1<<20))
	}
	body := s.free[:length:length]
	if s.keep {
		s.free = s.free[length:]
	}
	return body
}

// readResponse reads one response with a Content-Length and returns its body, in room of the shelf.
func readResponse(from *bufio.Reader, into *shelf) ([]byte, error) {
	status, err := from.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(status, statusOK) {
		return nil, fmt.Errorf("%w: %s", errNoResponse, bytes.TrimSpace(status))
	}
	length := -1
	for {
		line, err := from.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, lengthHeader) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return nil, err
			}
		}
	}
	if length < 0 {
		return nil, errChunked
	}
	body := into.room(length)
	_, err = io.ReadFull(from, body)
	return body, err
}
