package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// browser is shared: starting one takes longer than most tests. Nil: there is none.
var browser *Browser

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		browser, err = StartBrowser(context.Background())
		switch {
		case err == nil:
			defer browser.Close()
		case errors.Is(err, ErrNoChromium) && os.Getenv("REQUIRE_CHROMIUM") != "1":
			fmt.Fprintf(os.Stderr, "\n*** THE WEB PAGE IS NOT TESTED: %v\n\n", err)
		default:
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// looking is somebody in front of the page.
type looking struct {
	*testing.T
	*Site
	tab *Tab
}

// look opens the page of a small fleet. A token signs in beforehand; "": nobody is signed in.
func look(t *testing.T, token string) *looking {
	t.Helper()
	return lookAt(t, NewPeople(), token)
}

// lookAt opens the page of an API for some people.
func lookAt(t *testing.T, people *People, token string) *looking {
	t.Helper()
	return lookAtWorld(t, shop(), people, token)
}

// lookAtWorld opens the page of another fleet.
func lookAtWorld(t *testing.T, world *World, people *People, token string) *looking {
	t.Helper()
	if browser == nil {
		t.Skip(ErrNoChromium)
	}
	site, err := Serve(world, people, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := site.Close(); err != nil {
			t.Error(err)
		}
	})
	tab, err := browser.NewTab(1280, 900, signedIn(token))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, problem := range tab.Problems() {
			t.Errorf("the page: %s", problem)
		}
		tab.Close()
	})
	return &looking{t, site, tab}
}

// shop is a fleet of three members.
func shop() *World {
	w := NewWorld()
	for _, member := range []string{"prod-eu", "prod-us", "staging"} {
		w.AddMember(member)
		w.AddWorkload(member, "shop", "cart", 10, 70, 2)
		w.AddWorkload(member, "shop", "checkout", 6, 50, 2)
		w.AddWorkload(member, "search", "indexer", 24, 90, 1)
	}
	return w
}

func (l *looking) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *looking) until(expression string) {
	l.Helper()
	l.must(l.tab.Until(expression))
}

// says waits until the page shows a text.
func (l *looking) says(text string) {
	l.Helper()
	l.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// at opens a view, "" the fleet.
func (l *looking) at(view string) {
	l.Helper()
	l.must(l.tab.Do(chromedp.Navigate(l.URL + "#/" + view)))
}

// act does something with an element, which is looked for again where the page has drawn it anew since it was found.
func (l *looking) act(action chromedp.Action[chromedp.Void]) {
	l.Helper()
	err := l.tab.Do(action)
	for tries := 1; err != nil && tries < 100 && strings.Contains(strings.ToLower(err.Error()), "node with given id"); tries++ {
		err = l.tab.Do(action)
	}
	l.must(err)
}

func (l *looking) click(selector string) {
	l.Helper()
	l.until(fmt.Sprintf("document.querySelector(%q)", selector))
	l.act(chromedp.Click(chromedp.CSS(selector)))
}

func (l *looking) press(keys string) {
	l.Helper()
	l.must(l.tab.Do(chromedp.KeyEvent(keys)))
}

// slide moves a slider as a person does, by its keys.
func (l *looking) slide(id, keys string) {
	l.Helper()
	l.act(chromedp.Focus(chromedp.CSS("#" + id)))
	l.press(keys)
}

const readyTile = `document.querySelector('[data-member="prod-eu"] .badge')?.textContent === "Ready"`
