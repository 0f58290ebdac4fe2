package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/chromedp/chromedp"
)

// Paint is what a browser measures of one opening of the page by somebody who is signed in.
type Paint struct {
	// First is from the navigation to the first frame with a member on it; Whole to the one with all of them.
	First, Whole time.Duration
	// Bytes came over the network until then, as they were sent.
	Bytes float64
}

// signedIn is a script that signs a tab in; "": nobody.
func signedIn(token string) string {
	if token == "" {
		return ""
	}
	return fmt.Sprintf("sessionStorage.setItem('plimsoll.token', %q);", token)
}

// stopwatch notes when the first member and when n members are on a frame that was painted.
func stopwatch(n int) string {
	return fmt.Sprintf(`(() => {
	window.painted = {};
	const note = (what) => requestAnimationFrame(() => setTimeout(() => { window.painted[what] ??= performance.now(); }));
	new MutationObserver(() => {
		const tiles = document.querySelectorAll(".tile").length;
		if (tiles > 0) note("first");
		if (tiles >= %d) note("whole");
	}).observe(document, { childList: true, subtree: true });
})();`, n)
}

// MeasureWorld opens the fleet of a world with n members.
func MeasureWorld(ctx context.Context, world *World, n int) (paint Paint, err error) {
	site, err := Serve(world, NewPeople(), slog.New(slog.DiscardHandler), "")
	if err != nil {
		return Paint{}, err
	}
	defer func() { err = errors.Join(err, site.Close()) }()
	return MeasurePaint(ctx, site.URL, Admin, n)
}

// MeasurePaint opens the page at an address, which shows n members, in a browser whose cache is empty. Token "" is for an API that asks
// for none.
func MeasurePaint(ctx context.Context, address, token string, n int) (Paint, error) {
	browser, err := StartBrowser(ctx)
	if err != nil {
		return Paint{}, err
	}
	defer browser.Close()
	tab, err := browser.NewTab(1280, 900, signedIn(token)+stopwatch(n))
	if err != nil {
		return Paint{}, err
	}
	defer tab.Close()
	if err := errors.Join(tab.Do(chromedp.Navigate(address)), tab.Until("window.painted.whole")); err != nil {
		return Paint{}, err
	}
	times, err := Evaluate[struct{ First, Whole float64 }](tab, "({ First: painted.first, Whole: painted.whole })")
	if err != nil {
		return Paint{}, err
	}
	ms := float64(time.Millisecond)
	return Paint{First: time.Duration(times.First * ms), Whole: time.Duration(times.Whole * ms), Bytes: tab.Received()}, nil
}

// NewFleet is a world of some members with ten workloads each.
func NewFleet(members int) *World {
	w := NewWorld()
	for i := range members {
		name := fmt.Sprintf("member-%04d", i)
		w.AddMember(name)
		for j := range 10 {
			w.AddWorkload(name, "shop", fmt.Sprintf("service-%d", j), 2+j, 60, 1)
		}
	}
	return w
}
