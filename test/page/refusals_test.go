package page

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
)

func TestATokenThatExpiresSignsOut(t *testing.T) {
	l := look(t, "short-lived")
	l.Give("short-lived", func(auth.Access) bool { return true })
	l.at("")
	l.until(readyTile)
	l.Expire("short-lived")
	l.says("Your session has ended.")
	l.until(`sessionStorage.length === 0 && document.querySelectorAll(".tile").length === 0`)
}

func TestWhoMayDoNothingSeesNothing(t *testing.T) {
	l := look(t, "nobody")
	l.Give("nobody", func(auth.Access) bool { return false })
	l.at("")
	l.says("You may not do or see this.")
	l.at("workloads")
	l.says("You may not do or see this.")
	l.at("failing")
	l.says("You may not do or see this.")
	l.at("placements")
	l.says("You may not do or see this.")
	l.at("events")
	l.says("You may not do or see this.")
	l.at("workload/prod-eu/shop/Deployment/cart")
	l.says("You may not do or see this.")
	l.at("member/prod-eu")
	l.says("You may not do or see this.")
	if text, err := Evaluate[string](l.tab, "document.body.innerText"); err != nil || strings.Contains(text, "shop/cart") {
		t.Errorf("the page shows a workload, or %v:\n%s", err, text)
	}
}

func TestWhoMayOnlyLookIsToldSoWhenOrdering(t *testing.T) {
	l := look(t, "viewer")
	l.Give("viewer", func(a auth.Access) bool { return a.Verb != "requeue" && (a.Member == "prod-eu" || a.Member == "") })
	l.FailKey("prod-eu", "shop", "cart", "no", 1)
	l.at("failing")
	l.click(`button[aria-label="Requeue shop/cart of prod-eu"]`)
	l.says("You may not do or see this.")
	if n := l.Ordered(); n != 0 {
		t.Errorf("%d orders were given", n)
	}
}

func TestMarkupFromMembersIsShownAsText(t *testing.T) {
	l := look(t, Admin)
	hostile := `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"'><a href="javascript:window.hacked=1">x</a>`
	l.Spoil("prod-eu", "shop", "cart", hostile)
	l.FailKey("prod-eu", "shop", "cart", hostile, 1)
	l.SetState("prod-eu", clusters.StateDegraded, "Hostile", hostile)
	l.Place("shop", "cart", 5, "prod-eu", "prod-us")
	l.LoseReplicas("shop", "cart", "prod-us", hostile)
	for _, view := range []string{"", "member/prod-eu", "workloads", "failing", "events", "placements", "placement/shop/cart", "workload/prod-eu/shop/Deployment/cart"} {
		l.at(view)
		if view == "workloads" {
			l.says("shop/cart")
		} else {
			l.says(hostile)
		}
		found, err := Evaluate[int](l.tab, `document.querySelectorAll("main img, main script, main a:not([href^='#'])").length + (window.hacked ?? 0)`)
		l.must(err)
		if found != 0 {
			t.Errorf("view %q: text of a member became markup", view)
		}
	}
	// The address is a member's text as well, when somebody sends a link.
	l.at("member/%3Cimg%20src=x%20onerror=alert(1)%3E")
	l.says("There is no such member")
	l.at("workload/..%2f..%2f/x/y/%zz")
	l.until(readyTileOr("Degraded"))
}

func readyTileOr(state string) string {
	return fmt.Sprintf(`document.querySelector('[data-member="prod-eu"] .badge')?.textContent === %q`, state)
}

func TestTheBrowserRefusesWhatThePolicyForbids(t *testing.T) {
	l := look(t, Admin)
	l.at("")
	l.until(readyTile)
	for what, script := range map[string]string{
		"eval":           `(() => { try { window.eval("1"); return "ran" } catch { return "" } })()`,
		"markup of text": `(() => { try { document.body.innerHTML = "<b>x</b>"; return "ran" } catch { return "" } })()`,
		"inline script": `(() => { const s = document.createElement("script"); try { s.textContent = "window.inline = 1"; document.body.append(s) } catch {};
			return window.inline ? "ran" : "" })()`,
	} {
		ctx, cancel := context.WithTimeout(l.tab.ctx, Patience)
		ran, err := chromedp.Run(ctx, chromedp.Evaluate[string](script, underThePolicy))
		cancel()
		l.must(err)
		if ran != "" {
			t.Errorf("%s is possible", what)
		}
	}
	l.tab.Forgive() // refusals are what was wanted
}

// underThePolicy binds what the debugger evaluates by the page's policy, which it is not by default.
func underThePolicy(p *runtime.EvaluateParams) { p.AllowUnsafeEvalBlockedByCSP = new(false) }

func TestAConnectionThatIsLostIsSaidAndMended(t *testing.T) {
	l := look(t, Admin)
	l.at("")
	l.until(readyTile)
	l.away(func() {
		l.until(readyTile) // what is known stays
		l.AddMember("newcomer")
	})
	l.until(`document.querySelector('[data-member="newcomer"]') && document.getElementById("connection").hidden`)
}

// What goes while nobody listens is not told by anybody: it is what the next list lacks.
func TestWhatGoesWhileAConnectionIsLostLeavesThePage(t *testing.T) {
	l := look(t, Admin)
	l.FailKey("prod-eu", "shop", "cart", "admission webhook denied the request", 7)
	l.FailKey("prod-us", "search", "indexer", "the server is on fire", 2)
	l.at("failing")
	l.says("2 of 2 keys")
	l.away(func() { l.Finish("prod-eu", "shop", "cart") })
	l.until(`document.getElementById("connection").hidden`)
	l.says("1 of 1 key")
}

// away ends the API while something happens. Then there is another one at its address, with a world that has gone on.
func (l *looking) away(meanwhile func()) {
	l.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(l.URL, "https://"), "/ui/")
	l.must(l.Close())
	l.says("Not current:")
	meanwhile()
	again, err := Serve(l.World, l.People, slog.New(slog.DiscardHandler), address)
	l.must(err)
	l.stop, l.ended = again.stop, again.ended
}

func TestTheKeyboardAloneIsEnough(t *testing.T) {
	l := look(t, Admin)
	l.at("")
	l.until(`document.querySelectorAll(".tile").length === 3`)
	l.act(chromedp.Focus(chromedp.CSS(".tile[tabindex='0']")))
	l.press(kb.ArrowRight)
	l.until(`document.activeElement.dataset.member === "prod-us"`)
	l.press(kb.End)
	l.until(`document.activeElement.dataset.member === "staging"`)
	l.press(kb.Enter)
	l.until(`document.querySelector("h1").textContent === "staging" && document.activeElement.tagName === "H1"`)
	l.says("shop/cart")
	l.act(chromedp.Focus(chromedp.CSS(".space .row a")))
	first, err := Evaluate[string](l.tab, `document.activeElement.textContent`)
	l.must(err)
	l.press(kb.ArrowDown)
	l.until(fmt.Sprintf(`document.activeElement.matches(".row a") && document.activeElement.textContent !== %q`, first))
	l.press(kb.Enter)
	l.until(`document.querySelectorAll(".slot").length > 0`)
}

func TestLongListsHaveFewElements(t *testing.T) {
	l := look(t, Admin)
	for i := range 2000 {
		l.AddWorkload("staging", "many", fmt.Sprintf("w-%04d", i), 2, 50, 0)
	}
	l.at("member/staging")
	l.says("2,003 of 2,003 workloads")
	l.until(`document.querySelectorAll(".space .row").length > 5`)
	rows, err := Evaluate[int](l.tab, `document.querySelectorAll(".space .row").length`)
	l.must(err)
	if rows > 80 {
		t.Errorf("%d rows are elements", rows)
	}
	l.act(chromedp.Focus(chromedp.CSS(".space .row a")))
	l.press(kb.End)
	l.until(`document.activeElement.textContent.startsWith("shop/checkout")`)
}

// A fleet of the size that is promised: everything is there, and little of it is elements.
func TestAThousandMembersAndTenThousandWorkloads(t *testing.T) {
	l := lookAtWorld(t, NewFleet(1000), NewPeople(), Admin)
	l.at("")
	l.until(`document.querySelector("#only-all")?.textContent.startsWith("1,000") && document.querySelectorAll(".tile").length === 1000`)
	// What is far out of sight is a name, until somebody comes near.
	const far = `document.querySelector('[data-member="member-0900"]')`
	l.until(`!` + far + `.querySelector(".bar")`)
	l.act(chromedp.Focus(chromedp.CSS(".tile[tabindex='0']")))
	l.press(kb.End)
	l.until(`document.activeElement.dataset.member === "member-0999" && document.activeElement.querySelector(".bar")`)
	l.act(chromedp.SendKeys(chromedp.CSS("input[type=search]"), "0999"))
	l.until(`document.querySelectorAll(".tile").length === 1 && document.querySelector('[data-member="member-0999"]')`)
	l.at("workloads")
	l.says("10,000 of 10,000 workloads")
	l.act(chromedp.SendKeys(chromedp.CSS("input[type=search]"), "member-0500"))
	l.says("10 of 10,000 workloads")
	l.Move("member-0500", "shop", "service-9", 3)
	l.until(firstRow + `?.includes("service-9") && ` + firstRow + `.includes("Moving")`)
	rows, err := Evaluate[int](l.tab, `document.querySelectorAll(".space .row").length`)
	l.must(err)
	if rows > 80 {
		t.Errorf("%d rows are elements", rows)
	}
}
