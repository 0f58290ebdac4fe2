package page

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
)

// firstRow is the text of the list's first row.
const firstRow = `document.querySelector(".space .row")?.innerText`

func TestEventsAreShownAsTheyHappenTheNewestFirst(t *testing.T) {
	l := look(t, Admin)
	l.at("events")
	l.says("Nothing of this kind has happened lately.")
	for _, happens := range []struct {
		do    func()
		shows []string
	}{
		{func() { l.Move("prod-eu", "shop", "cart", 4) }, []string{"Move", "prod-eu", "shop/cart", "the mix asks for it"}},
		{func() { l.Dry("prod-us", "search", "indexer") }, []string{"No capacity", "prod-us", "search/indexer", "spot"}},
		{func() { l.SetState("staging", clusters.StateUnreachable, "ProbeFailed", "its API server is silent") },
			[]string{"Member state", "staging", "its API server is silent"}},
		{func() {
			l.Journal.Add(journal.Event{Type: journal.Interruption, Member: "prod-eu", Subject: "node-3", Message: "node-3 goes in 2 minutes"})
		},
			[]string{"Interruption", "node-3"}},
	} {
		happens.do()
		for _, text := range happens.shows {
			l.until(fmt.Sprintf("%s?.includes(%q)", firstRow, text))
		}
	}
	l.says("4 of 4 events")
}

func TestAnOrderIsAnEventWithWhoGaveIt(t *testing.T) {
	l := look(t, Admin)
	l.at("workload/prod-eu/shop/Deployment/cart")
	l.click(`button[aria-label="Requeue cart"]`)
	l.until(`document.querySelector(".order").textContent.includes("Pending")`)
	l.Finish("prod-eu", "shop", "cart")
	l.at("events")
	l.until(firstRow + `?.includes("Requeue") && ` + firstRow + `.includes("by ` + Admin + `")`)
}

func TestEventsAreFilteredByKindAndText(t *testing.T) {
	l := look(t, Admin)
	l.Move("prod-eu", "shop", "cart", 4)
	l.Dry("prod-us", "search", "indexer")
	l.SetState("staging", clusters.StateUnreachable, "ProbeFailed", "its API server is silent")
	l.at("events")
	l.says("3 of 3 events")
	l.press("/")
	l.press("index")
	l.says("1 of 3 events")
	l.until(firstRow + `.includes("search/indexer")`)
	l.press(kb.Backspace + kb.Backspace + kb.Backspace + kb.Backspace + kb.Backspace)
	l.says("3 of 3 events")
	for choice, want := range map[string]string{"moves": "Move", "shortages": "No capacity", "states": "Member state"} {
		_, err := Evaluate[bool](l.tab, fmt.Sprintf(`(() => { const s = document.querySelector(".tools select"); s.value = %q; s.dispatchEvent(new Event("change")); return true })()`, choice))
		l.must(err)
		l.says("1 of 1 event")
		l.until(fmt.Sprintf("%s?.includes(%q)", firstRow, want))
	}
}

func TestAMemberShowsItsOwnEventsAndLeadsToTheWorkload(t *testing.T) {
	l := look(t, Admin)
	l.Move("prod-eu", "shop", "cart", 4)
	l.Move("prod-us", "search", "indexer", 4)
	l.at("member/prod-eu")
	l.until(`document.querySelector('section[aria-label="Events"]').innerText.includes("1 of 1 event")`)
	l.says("3 of 3 workloads") // what comes above it would move it away from the pointer
	l.says("deployment-spot")
	l.click(`section[aria-label="Events"] .row a[href*="workload"]`)
	l.until(`document.querySelector("h1").textContent === "cart" && document.querySelectorAll(".slot").length === 10`)
}
