package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Patience is how long something may take that must come true.
const Patience = time.Minute

// ErrNoChromium says how to get what is missing.
var ErrNoChromium = errors.New("there is no chromium: `apt-get install chromium` brings it on Debian, or set PLIMSOLL_CHROMIUM to the path of a Chromium")

// FindChromium returns the browser's path.
func FindChromium() (string, error) {
	path, err := exec.LookPath(cmp.Or(os.Getenv("PLIMSOLL_CHROMIUM"), "chromium"))
	if err != nil {
		return "", ErrNoChromium
	}
	return path, nil
}

// Browser is a headless Chromium with a profile of its own.
type Browser struct {
	ctx  context.Context
	stop func()
}

// StartBrowser starts one; it ends when ctx does, or at [Browser.Close].
func StartBrowser(ctx context.Context) (*Browser, error) {
	path, err := FindChromium()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(Patience),
		// The certificates of tests are nobody's.
		chromedp.IgnoreCertErrors,
		// As root, and in containers, Chromium cannot make its sandbox. What it opens here is our own.
		chromedp.NoSandbox,
		chromedp.Flag("lang", "en"))
	allocated, stopProcess := chromedp.NewExecAllocator(ctx, options...)
	browser, stopBrowser := chromedp.NewContext(allocated)
	if err := chromedp.Do(browser); err != nil {
		stopBrowser()
		stopProcess()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return &Browser{ctx: browser, stop: func() { stopBrowser(); stopProcess() }}, nil
}

// Close ends the browser, and all tabs.
func (b *Browser) Close() { b.stop() }

// Tab is one tab, with cookies and storage of its own. Use it from one goroutine.
type Tab struct {
	ctx  context.Context
	stop context.CancelFunc

	mu       sync.Mutex
	problems []string
	received map[network.RequestID]float64 // bytes
	seen     sync.WaitGroup
}

// NewTab opens one of a size in CSS pixels. What script says runs in each document before its own scripts.
func (b *Browser) NewTab(width, height int64, script string) (*Tab, error) {
	t := &Tab{received: map[network.RequestID]float64{}}
	t.ctx, t.stop = chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(t.count))
	err := chromedp.Do(t.ctx, chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
	if err != nil {
		t.stop()
		return nil, fmt.Errorf("open a tab: %w", err)
	}
	messages := chromedp.Console(t.ctx)
	t.seen.Go(func() {
		for message, err := range messages {
			if err != nil {
				return // the tab is closed
			}
			t.hear(message)
		}
	})
	return t, nil
}

// Close closes the tab.
func (t *Tab) Close() {
	t.stop()
	t.seen.Wait()
}

// hear keeps what a page must not do: exceptions, and what its policy has refused.
func (t *Tab) hear(message chromedp.ConsoleMessage) {
	// What the API refuses is logged as well, and is what many tests are about.
	if message.Source == "network" || message.Type != chromedp.ConsoleException && message.Type != chromedp.ConsoleError {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, message.String())
}

// count adds up what comes over the network.
func (t *Tab) count(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *network.EventDataReceived:
		t.received[e.RequestID] += float64(max(e.EncodedDataLength, 0))
	case *network.EventLoadingFinished:
		t.received[e.RequestID] = e.EncodedDataLength
	}
}

// Received is how many bytes have come over the network, as they were sent.
func (t *Tab) Received() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := 0.0
	for _, bytes := range t.received {
		sum += bytes
	}
	return sum
}

// Problems returns what the page did that it must not do.
func (t *Tab) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.problems...)
}

// Do runs actions; all of them together have [Patience].
func (t *Tab) Do(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(t.ctx, Patience)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

// Evaluate returns what an expression of JavaScript is.
func Evaluate[T any](t *Tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(t.ctx, Patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression))
}

// Scheme makes the browser prefer dark or light.
func (t *Tab) Scheme(scheme string) error {
	return t.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	}))
}

// Screenshot is what the tab shows, as PNG.
func (t *Tab) Screenshot() ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.ctx, Patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}

// Until waits until an expression is true.
func (t *Tab) Until(expression string) error {
	deadline := time.Now().Add(Patience)
	for {
		is, err := Evaluate[bool](t, "Boolean("+expression+")")
		if err != nil {
			return fmt.Errorf("%s: %w", expression, err)
		}
		if is {
			return nil
		}
		if time.Now().After(deadline) {
			text, _ := Evaluate[string](t, "document.body.innerText.slice(0, 3000)") // the error is about something else
			return fmt.Errorf("it did not come true within %s that %s; the page says:\n%s", Patience, expression, text)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.ctx.Done():
			return t.ctx.Err()
		}
	}
}

// Forgive forgets the problems so far.
func (t *Tab) Forgive() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = nil
}
