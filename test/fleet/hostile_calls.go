package fleet

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// callersOfKind is how many calls of each kind are under way at a time.
	callersOfKind = 4
	// hugeCall is how many bytes a call has that does not say so, and allowedPod and allowedConversion those of calls that say how
	// many they have: as many as the hub reads.
	hugeCall, allowedPod, allowedConversion = 60 << 20, 3 << 20, 16 << 20
	// hugeCallPause is between a call that ended and the next: a member can call faster, and what a refused call costs the
	// machine is then measured instead of what the hub does about it.
	hugeCallPause = 50 * time.Millisecond
)

// callers call the hub as a hostile API server would: it knows the URL, with the token in it.
type callers struct {
	targets []string
	client  *http.Client
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	count   *callCount
}

// callCount is how many calls were sent, and how many bytes of their bodies were read to be sent.
type callCount struct{ calls, bytes atomic.Int64 }

func newCallers(targets []string, count *callCount) *callers {
	ctx, end := context.WithCancel(context.Background())
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // an attacker checks nothing
	return &callers{targets: targets, client: &http.Client{Transport: transport}, ctx: ctx, end: end, count: count}
}

// start begins calls of every kind at each target.
func (c *callers) start() {
	const zeros = `{"request":{"objects":[`
	said := func(bytes int64) func() (io.Reader, int64) {
		return func() (io.Reader, int64) {
			return io.LimitReader(io.MultiReader(strings.NewReader(zeros), &repeated{text: "0,", left: int(bytes)}), bytes), bytes
		}
	}
	bodies := []func() (body io.Reader, length int64){
		func() (io.Reader, int64) { return &repeated{text: "[", left: hugeCall}, -1 },
		func() (io.Reader, int64) {
			return io.MultiReader(strings.NewReader(zeros), &repeated{text: "0,", left: hugeCall}), -1
		},
		func() (io.Reader, int64) { return &slow{ctx: c.ctx, of: &repeated{text: " ", left: hugeCall}}, -1 },
		said(allowedPod), said(allowedConversion),
	}
	for _, target := range c.targets {
		for _, body := range bodies {
			for range callersOfKind {
				c.running.Go(func() { c.keepCalling(target, body) })
			}
		}
	}
}

func (c *callers) keepCalling(target string, make func() (body io.Reader, length int64)) {
	for c.ctx.Err() == nil {
		body, length := make()
		request, err := http.NewRequestWithContext(c.ctx, http.MethodPost, target, &counted{of: body, bytes: &c.count.bytes})
		if err != nil {
			return
		}
		request.ContentLength = length
		request.Header.Set("Content-Type", "application/json")
		c.count.calls.Add(1)
		if answer, err := c.client.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
		pause(c.ctx, hugeCallPause)
	}
}

func (c *callers) stop() {
	c.end()
	c.running.Wait()
	c.client.CloseIdleConnections()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// repeated is a text again and again, with so many bytes in all.
type repeated struct {
	text string
	left int
}

// Read fills p with whole texts. It doubles what it has: text by text, this would take the hostile member longer than to encrypt and send
// it all, and the bench, with the hub on the same machine, would measure that.
func (r *repeated) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	p = p[:min(len(p), r.left)]
	whole := len(p) - len(p)%len(r.text)
	n := copy(p, r.text)
	for n < whole {
		n += copy(p[n:whole], p[:n])
	}
	r.left -= n
	return n, nil
}

// counted adds up what is read.
type counted struct {
	of    io.Reader
	bytes *atomic.Int64
}

// Read reads.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.of.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// slow has a little every second.
type slow struct {
	ctx context.Context
	of  io.Reader
}

// Read waits and reads a kilobyte.
func (s *slow) Read(p []byte) (int, error) {
	pause(s.ctx, time.Second)
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.of.Read(p[:min(len(p), 1<<10)])
}
