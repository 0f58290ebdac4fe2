package fleet

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"sync"
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
}

func newCallers(targets []string) *callers {
	ctx, end := context.WithCancel(context.Background())
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // an attacker checks nothing
	return &callers{targets: targets, client: &http.Client{Transport: transport}, ctx: ctx, end: end}
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
		request, err := http.NewRequestWithContext(c.ctx, http.MethodPost, target, body)
		if err != nil {
			return
		}
		request.ContentLength = length
		request.Header.Set("Content-Type", "application/json")
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

// Read fills p.
func (r *repeated) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n+len(r.text) <= len(p) {
		n += copy(p[n:], r.text)
	}
	if n == 0 {
		n = copy(p, r.text)
	}
	r.left -= n
	return n, nil
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
