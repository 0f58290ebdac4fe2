package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

const (
	// lookInterval is how often AwaitReady looks.
	lookInterval = 20 * time.Millisecond
	// lookTime is how long one look may take.
	lookTime = 2 * time.Second
)

// AwaitReady waits until ready returns nil. It ends at once when the process has ended, and when ctx ends; the error says what
// ready said last, and how the log ends. A look that takes longer than 2 s counts as failed.
func (p *Process) AwaitReady(ctx context.Context, ready func(context.Context) error) error {
	ticks := time.NewTicker(lookInterval)
	defer ticks.Stop()
	last := errors.New("it has not answered")
	for {
		look, cancel := context.WithTimeout(ctx, lookTime)
		err := ready(look)
		cancel()
		switch {
		case p.Ended(): // whoever has answered was another
			return p.outcome()
		case err == nil:
			return nil
		case ctx.Err() == nil: // what was cut off by the end of the wait says nothing
			last = err
		}
		select {
		case <-ticks.C:
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be ready: %w: %w%s", p.name, context.Cause(ctx), last, p.quote())
		}
	}
}

// OK is what AwaitReady asks of a server: that a GET of the URL is answered with 200. A nil client is http.DefaultClient.
func OK(client *http.Client, url string) func(context.Context) error {
	if client == nil {
		client = http.DefaultClient
	}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}

// FirstLine is what AwaitReady asks of a command that says where it is: that the first line of its log is whole. It writes the
// line to where into points.
func FirstLine(log string, into *string) func(context.Context) error {
	return func(context.Context) error {
		content, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		line, _, whole := bytes.Cut(content, []byte("\n"))
		if !whole {
			return fmt.Errorf("it has printed %q", line)
		}
		*into = string(line)
		return nil
	}
}
