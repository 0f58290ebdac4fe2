package page

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
)

func TestAPlacementShowsItsMembersAndAMemberThatIsLost(t *testing.T) {
	l := look(t, Admin)
	l.Place("shop", "cart", 5, "prod-eu", "prod-us", "staging")
	l.Place("shop", "checkout", 3, "prod-eu", "prod-us")
	l.at("placements")
	l.says("2 of 2 placements")
	l.until(`[...document.querySelectorAll(".space .row")].some((row) => row.innerText.includes("17 of 17") && row.innerText.includes("Placed"))`)
	l.LoseReplicas("shop", "cart", "prod-us", "out of reach for 2 min")
	// What needs somebody comes first.
	l.until(firstRow + `?.includes("shop/cart") && ` + firstRow + `.includes("Moving") && ` + firstRow + `.includes("12 of 17")`)
	l.act(chromedp.Focus(chromedp.CSS(".space .row a")))
	l.press(kb.Enter)
	l.until(`document.querySelector("h1").textContent === "cart"`)
	for _, text := range []string{"out of reach for 2 min", "makes up for prod-us", "Lost", "+5", "5 of 10"} {
		l.says(text)
	}
	l.click(`section[aria-label="Members"] a[href*="prod-eu"]`)
	l.until(`document.querySelectorAll(".slot").length === 10`)
}

// The answers are those of the plan itself.
func TestAPlacementIsExplainedAndAskedWhatIf(t *testing.T) {
	l := look(t, Admin)
	l.Place("shop", "cart", 5, "prod-eu", "prod-us", "staging")
	l.at("placement/shop/cart")
	l.until(`document.querySelectorAll('section[aria-label="Why"] tbody tr').length === 3`)
	l.says("Move a slider to ask.")
	l.until(`document.querySelector("#placement-replicas")?.value === "17" && document.querySelector("#placement-floor")?.value === "2"`)
	l.slide("placement-floor", kb.End)
	l.says("0 on spot and 17 on on-demand in all")
	l.until(`document.querySelectorAll('section[aria-label="What if"] tbody tr').length > 3`)
}

// One that changes faster than it is explained is explained all the same.
func TestAPlacementThatChangesAllTheTimeIsExplained(t *testing.T) {
	l := look(t, Admin)
	l.ExplainTakes = 3 * time.Second // the page asks again after one
	l.Place("shop", "cart", 5, "prod-eu", "prod-us", "staging")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := int32(1); ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
				l.Place("shop", "cart", 5+n%2, "prod-eu", "prod-us", "staging")
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	l.at("placement/shop/cart")
	l.until(`document.querySelectorAll('section[aria-label="Why"] tbody tr').length === 3`)
}

func TestAPlacementThatIsNotThereIsSaid(t *testing.T) {
	l := look(t, Admin)
	l.at("placement/shop/nothing")
	l.says("There is no such FleetPlacement")
}

// Totals count members that somebody may not see, and nothing names them.
func TestMembersOfAPlacementThatMayNotBeSeenAreCountedOnly(t *testing.T) {
	l := look(t, "european")
	l.Give("european", func(a auth.Access) bool { return a.Group != "" || a.Member == "prod-eu" })
	l.Place("shop", "cart", 5, "prod-eu", "prod-us", "staging")
	l.at("placement/shop/cart")
	l.says("2 more members that you may not see.")
	named, err := Evaluate[bool](l.tab, `document.body.innerText.includes("prod-us")`)
	l.must(err)
	if named {
		t.Error("a member is named that may not be seen")
	}
}

func TestAHubWithoutFleetPlacementSaysSo(t *testing.T) {
	l := look(t, Admin)
	address := strings.TrimSuffix(strings.TrimPrefix(l.URL, "https://"), "/ui/")
	l.must(l.Close())
	l.NoFleet = true
	again, err := Serve(l.World, l.People, slog.New(slog.DiscardHandler), address)
	l.must(err)
	l.stop, l.ended = again.stop, again.ended
	l.at("placements")
	l.says("fleet.enabled is not set")
}
