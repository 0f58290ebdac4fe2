package main

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// measureEvery is how often we look how slow everything is.
	measureEvery = 200 * time.Millisecond
	// measureTime bounds one look. A longer delay counts as that long.
	measureTime = 10 * time.Second
)

// A Delay is how long something took that takes next to nothing when the machine has time for it.
type Delay struct {
	From, To time.Time
}

// slowness is how long requests that nothing is done to take from a client through a proxy to an API server and back: what
// the judge may put down to the machine. Only what was measured excuses anything.
type slowness struct {
	mu     sync.Mutex
	delays []Delay
}

// measure asks an API server again and again until ctx ends. Answers of any kind count; connections that fail do not.
func (s *slowness) measure(ctx context.Context, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout = measureTime
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	defer client.CloseIdleConnections()
	for due := time.Now(); ctx.Err() == nil; {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/livez/ping", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		if now := time.Now(); err == nil || now.Sub(due) >= measureTime {
			s.add(Delay{From: due, To: now})
		}
		select {
		case due = <-tick.C: // when we should have begun, even if we wake up later
		case <-ctx.Done():
		}
	}
	return nil
}

// noted is the shortest delay that is kept.
const noted = 100 * time.Millisecond

func (s *slowness) add(d Delay) {
	if d.To.Sub(d.From) < noted {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delays = append(s.delays, d)
}

// longest is the longest delay that touches a time.
func (s *slowness) longest(from, to time.Time) (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.delays {
		if !d.From.After(to) && !d.To.Before(from) {
			longest = max(longest, d.To.Sub(d.From))
		}
	}
	return longest
}

// excuses reports whether a write that arrived at a time may have been sent when the tenure that has ended still allowed it: no
// write begins in the last writeTime of a tenure, so it must have been on its way for that long, and others were as well.
func (s *slowness) excuses(ended, arrived time.Time) bool {
	sent := ended.Add(-writeTime)
	return !ended.IsZero() && s.longest(sent, arrived) >= arrived.Sub(sent)
}
