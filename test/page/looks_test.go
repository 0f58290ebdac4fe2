package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// contrasts lists every text on the page whose contrast with what is behind it is below 4.5:1, as WCAG AA asks of text of any size.
// Controls that are disabled are exempt.
const contrasts = `(() => {
	const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
	const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (element) => {
		for (let e = element; e; e = e.parentElement) {
			const colour = numbers(getComputedStyle(e).backgroundColor);
			if (colour.length === 3 || colour[3] === 1) return colour;
		}
		return [255, 255, 255];
	};
	const found = [];
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const element = walker.currentNode.parentElement;
		if (!walker.currentNode.textContent.trim() || !element.checkVisibility() || element.closest(":disabled, noscript, .hidden, .skip")) continue;
		const [a, b] = [luminance(numbers(getComputedStyle(element).color)), luminance(behind(element))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) found.push(walker.currentNode.textContent.trim().slice(0, 40) + ": " + ratio.toFixed(2));
	}
	return found;
})()`

// texts is how many texts there are to judge.
const texts = `[...document.querySelectorAll("main *")].filter((e) => e.childElementCount === 0 && e.textContent.trim()).length`

// nameless lists every control that assistive technology has no name for.
const nameless = `[...document.querySelectorAll("a, button, input, select")].filter((e) =>
	!(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length > 0)).map((e) => e.outerHTML)`

// views are all of them, with what is there when they are whole.
var views = []struct{ view, waits string }{
	{"", readyTile + ` && document.body.innerText.includes("without capacity")`},
	{"member/prod-eu", `document.body.innerText.includes("shop/cart") && document.body.innerText.includes("deployment-spot")`},
	{"workloads", `document.querySelectorAll(".space .row").length > 0`},
	{"workload/prod-eu/shop/Deployment/cart", `document.querySelectorAll(".slot").length === 10`},
	{"placements", `document.querySelectorAll(".space .row").length === 1`},
	{"placement/shop/cart", `document.body.innerText.includes("makes up for prod-us")`},
	{"failing", `document.querySelectorAll(".space .row").length === 1`},
	{"events", `document.querySelectorAll(".space .row").length === 3`},
}

func troubled(l *looking) {
	l.Place("shop", "cart", 5, "prod-eu", "prod-us", "staging")
	l.LoseReplicas("shop", "cart", "prod-us", "out of reach for 2 min")
	l.Dry("prod-us", "search", "indexer")
	l.Move("prod-eu", "shop", "cart", 4)
	l.SetState("staging", clusters.StateUnreachable, "ProbeFailed", "its API server does not answer")
	l.FailKey("prod-eu", "shop", "cart", "the server is on fire", 7)
}

func TestTextCanBeReadAndControlsHaveNames(t *testing.T) {
	l := look(t, Admin)
	troubled(l)
	for _, scheme := range []string{"light", "dark"} {
		l.must(l.tab.Scheme(scheme))
		for _, v := range views {
			l.at(v.view)
			l.until(v.waits)
			for what, expression := range map[string]string{"contrast": contrasts, "name": nameless} {
				found, err := Evaluate[[]string](l.tab, expression)
				l.must(err)
				if len(found) > 0 {
					t.Errorf("%s, view %q: too little %s:\n%s", scheme, v.view, what, strings.Join(found, "\n"))
				}
			}
			if n, err := Evaluate[int](l.tab, texts); err != nil || n < 10 {
				t.Errorf("%s, view %q: only %d texts were judged, %v", scheme, v.view, n, err)
			}
		}
	}
	ground, err := Evaluate[string](l.tab, "getComputedStyle(document.body).backgroundColor")
	l.must(err)
	if ground != "rgb(18, 22, 27)" {
		t.Errorf("the ground of the dark scheme is %s", ground)
	}
}

func TestANarrowScreenNeedsNoScrollingToTheSide(t *testing.T) {
	l := look(t, Admin)
	troubled(l)
	l.must(l.tab.Do(chromedp.EmulateViewport(340, 700)))
	for _, v := range views {
		l.at(v.view)
		l.until(v.waits)
		over, err := Evaluate[int](l.tab, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
		l.must(err)
		if over > 0 {
			t.Errorf("view %q is %d px wider than the screen", v.view, over)
		}
	}
}

// shots are what docs/ shows, by name.
var shots = []struct{ name, view, scheme, waits string }{
	{"page-fleet", "", "light", `document.querySelectorAll(".tile").length === 14 && document.body.innerText.includes("without capacity") && document.body.innerText.includes("queue 0")`},
	{"page-member", "member/prod-eu", "light", `document.body.innerText.includes("shop/cart") && document.body.innerText.includes("deployment-spot")`},
	{"page-workload", "workload/prod-eu/shop/Deployment/cart", "dark", `document.querySelector('[data-moves]')`},
	{"page-failing", "failing", "light", `document.body.innerText.includes("2 of 2 keys")`},
	{"page-placement", "placement/shop/cart", "light", `document.body.innerText.includes("makes up for prod-us")`},
	{"page-events", "events", "dark", `document.body.innerText.includes("4 of 4 events")`},
}

// With UPDATE_SCREENSHOTS=1 the files are written; without it each view is only looked at.
func TestScreenshots(t *testing.T) {
	l := look(t, Admin)
	for i := range 11 {
		name := fmt.Sprintf("edge-%02d", i+1)
		l.AddMember(name)
		for j := range 4 {
			l.AddWorkload(name, "edge", fmt.Sprintf("service-%d", j), 4+3*i+j, 60, 1)
		}
		l.Displace(name, "edge", "service-2", 2+i%3)
	}
	l.SetState("edge-07", clusters.StateDegraded, "KindMissing", "StatefulSets may not be listed")
	l.Dry("prod-us", "search", "indexer")
	l.Move("prod-eu", "shop", "cart", 4)
	l.SetState("staging", clusters.StateUnreachable, "ProbeFailed", "its API server does not answer")
	l.FailKey("prod-eu", "shop", "cart", `admission webhook "policy.example" denied the request: replicas must carry a team label`, 7)
	l.FailKey("prod-us", "search", "indexer", "the server was unable to return a response in time", 2)
	l.Place("shop", "cart", 5, "prod-eu", "prod-us", "edge-01", "edge-02")
	l.LoseReplicas("shop", "cart", "prod-us", "out of reach for 2 min")
	for _, shot := range shots {
		l.must(l.tab.Scheme(shot.scheme))
		l.at(shot.view)
		if shot.name == "page-workload" {
			l.until(`document.querySelector("#whatif-share")?.value === "70"`)
			l.slide("whatif-share", kb.ArrowRight)
		}
		l.until(shot.waits)
		picture, err := l.tab.Screenshot()
		l.must(err)
		if len(picture) < 10_000 {
			t.Errorf("%s has %d bytes", shot.name, len(picture))
		}
		if os.Getenv("UPDATE_SCREENSHOTS") == "1" {
			l.must(os.MkdirAll(filepath.Join("..", "..", "docs", "images"), 0o755))
			l.must(os.WriteFile(filepath.Join("..", "..", "docs", "images", shot.name+".png"), picture, 0o644))
		}
	}
}
