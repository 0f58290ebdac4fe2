package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api"
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
	if browser == nil {
		t.Skip(ErrNoChromium)
	}
	site, err := Serve(shop(), NewPeople(), slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), "")
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

func (l *looking) click(selector string) {
	l.Helper()
	l.until(fmt.Sprintf("document.querySelector(%q)", selector))
	l.must(l.tab.Do(chromedp.Click(chromedp.CSS(selector))))
}

func (l *looking) press(keys string) {
	l.Helper()
	l.must(l.tab.Do(chromedp.KeyEvent(keys)))
}

// slide moves a slider as a person does, by its keys.
func (l *looking) slide(id, keys string) {
	l.Helper()
	l.must(l.tab.Do(chromedp.Focus(chromedp.CSS("#" + id))))
	l.press(keys)
}

const readyTile = `document.querySelector('[data-member="prod-eu"] .badge')?.textContent === "Ready"`

func TestSigningInAndOut(t *testing.T) {
	l := look(t, "")
	l.at("")
	l.says("Sign in to Plimsoll")
	l.must(l.tab.Do(chromedp.SendKeys(chromedp.CSS("#token"), "somebody-elses-token"+kb.Enter)))
	l.says("the bearer token was not accepted")
	l.must(l.tab.Do(chromedp.SendKeys(chromedp.CSS("#token"), Admin+kb.Enter)))
	l.until(readyTile)
	kept, err := Evaluate[string](l.tab, `JSON.stringify([sessionStorage.getItem("plimsoll.token"), localStorage.length, document.cookie])`)
	l.must(err)
	if want := fmt.Sprintf(`["%s",0,""]`, Admin); kept != want {
		t.Errorf("the browser keeps %s, want %s", kept, want)
	}
	l.must(l.tab.Do(chromedp.Reload()))
	l.until(readyTile)
	l.click("header button")
	l.says("You have signed out.")
	left, err := Evaluate[int](l.tab, `sessionStorage.length`)
	l.must(err)
	if left != 0 {
		t.Error("the token is kept after signing out")
	}
}

func TestTheFleetShowsItsMembersAndWhatBecomesOfThem(t *testing.T) {
	l := look(t, Admin)
	l.at("")
	l.until(readyTile)
	l.until(`document.querySelectorAll(".tile").length === 3`)
	l.until(`document.querySelector('[data-member="prod-eu"]').innerText.includes("3 workloads")`)
	l.until(`document.querySelector('[data-member="prod-eu"]').innerText.includes("queue 0")`)
	l.SetState("prod-eu", clusters.StateUnreachable, "ProbeFailed", "its API server does not answer")
	l.until(`document.querySelector('[data-member="prod-eu"] .badge').textContent === "Unreachable"`)
	l.says("its API server does not answer")
	// What needs somebody comes first.
	l.until(`document.querySelector(".tile").dataset.member === "prod-eu"`)
	l.Dry("prod-us", "shop", "cart")
	l.until(`document.querySelector('[data-member="prod-us"]').innerText.includes("1 workload without capacity")`)
	l.click("#only-CLUSTER_STATE_UNREACHABLE")
	l.until(`document.querySelectorAll(".tile").length === 1`)
	l.SetState("prod-eu", clusters.StateReady, "Healthy", "")
	l.until(`document.querySelectorAll(".tile").length === 0`)
	l.click("#only-all")
	l.until(readyTile)
}

func TestAMemberShowsItsConditionsWorkloadsAndControllers(t *testing.T) {
	l := look(t, Admin)
	l.at("")
	l.click(`[data-member="prod-us"]`)
	l.until(`document.querySelector("h1").textContent === "prod-us"`)
	for _, text := range []string{"Permitted", "prod-us.example:6443", "shop/cart", "deployment-spot", "3 of 3 workloads"} {
		l.says(text)
	}
	l.press("/")
	l.until(`document.activeElement.type === "search"`)
	l.press("index")
	l.says("1 of 3 workloads")
	l.SetState("prod-us", clusters.StateDegraded, "KindMissing", "StatefulSets are not permitted")
	l.says("StatefulSets are not permitted")
}

func TestAWorkloadShowsAMoveAsItHappens(t *testing.T) {
	l := look(t, Admin)
	l.at("workload/prod-eu/shop/Deployment/cart")
	l.until(`document.querySelectorAll(".slot").length === 10 && document.querySelectorAll(".slot.spot").length === 7`)
	for _, text := range []string{"70 % of 10 replicas belong on spot capacity", "It waits for nothing.", "70 % (workload)", "2 (namespace)"} {
		l.says(text)
	}
	slot, err := Evaluate[int](l.tab, `Number(document.querySelector(".slot.spot").dataset.slot)`)
	l.must(err)
	square := fmt.Sprintf(`document.querySelector('[data-slot="%d"]').className`, slot)
	l.Displace("prod-eu", "shop", "cart", slot)
	l.until(square + `.includes("on-demand misplaced")`)
	l.Move("prod-eu", "shop", "cart", slot)
	l.until(square + `.includes("spot") && ` + square + `.includes("unready")`)
	l.says("the mix asks for it")
	l.Settle("prod-eu", "shop", "cart")
	l.until(`!` + square + `.includes("unready")`)
	l.says("every replica is where it belongs")
}

func TestWhatIfAnswersASlider(t *testing.T) {
	l := look(t, Admin)
	l.at("workload/prod-eu/shop/Deployment/cart")
	l.until(`document.querySelector("#whatif-share")?.value === "70"`)
	l.slide("whatif-share", kb.Home)
	l.until(`document.querySelector('[data-moves="7"]')`)
	l.says("7 replicas would move.")
	l.slide("whatif-share", kb.End)
	// All but the floor of two.
	l.until(`document.querySelector('[data-moves="1"]')`)
	l.slide("whatif-floor", kb.Home)
	l.until(`document.querySelector('[data-moves="3"]')`)
	if n := l.Ordered(); n != 0 {
		t.Errorf("%d orders were given", n)
	}
}

func TestAFailingKeyIsRequeuedAndItsOrderFollowed(t *testing.T) {
	l := look(t, Admin)
	l.FailKey("prod-eu", "shop", "cart", "admission webhook denied the request", 7)
	l.FailKey("prod-us", "search", "indexer", "the server is on fire", 2)
	l.at("failing")
	l.says("2 of 2 keys")
	l.says("admission webhook denied the request")
	l.click(`button[aria-label="Requeue shop/cart of prod-eu"]`)
	l.says("Pending")
	l.Finish("prod-eu", "shop", "cart")
	l.says("1 of 1 key")
	l.until(`!document.body.innerText.includes("admission webhook")`)
	l.click(".tools > button")
	l.says("1 key would be requeued")
	l.until(`document.querySelector("dialog .tools button:not([disabled])")`)
	l.click("dialog .tools button")
	l.says("1 key ordered.")
	l.Finish("prod-us", "search", "indexer")
	l.says("No key is failing.")
}

func TestAWorkloadIsRequeued(t *testing.T) {
	l := look(t, Admin)
	l.at("workload/prod-eu/shop/Deployment/cart")
	l.click(`button[aria-label="Requeue cart"]`)
	l.until(`document.querySelector(".order").textContent.includes("Pending")`)
	l.Finish("prod-eu", "shop", "cart")
	l.until(`document.querySelector(".order").textContent.includes("Done")`)
}

func TestATokenThatExpiresSignsOut(t *testing.T) {
	l := look(t, "short-lived")
	l.Give("short-lived", func(api.Access) bool { return true })
	l.at("")
	l.until(readyTile)
	l.Expire("short-lived")
	l.says("Your session has ended.")
	l.until(`sessionStorage.length === 0 && document.querySelectorAll(".tile").length === 0`)
}

func TestWhoMayDoNothingSeesNothing(t *testing.T) {
	l := look(t, "nobody")
	l.Give("nobody", func(api.Access) bool { return false })
	l.at("")
	l.says("You may not do or see this.")
	l.at("workloads")
	l.says("You may not do or see this.")
	l.at("failing")
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
	l.Give("viewer", func(a api.Access) bool { return a.Verb != "requeue" && (a.Member == "prod-eu" || a.Member == "") })
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
	for _, view := range []string{"", "member/prod-eu", "workloads", "failing", "workload/prod-eu/shop/Deployment/cart"} {
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
	// Another API at the same address, with a world that has gone on meanwhile.
	address := strings.TrimSuffix(strings.TrimPrefix(l.URL, "https://"), "/ui/")
	l.must(l.Close())
	l.says("Not current:")
	l.until(readyTile) // what is known stays
	l.World.AddMember("newcomer")
	again, err := Serve(l.World, l.People, slog.New(slog.DiscardHandler), address)
	l.must(err)
	l.Site.stop, l.Site.ended = again.stop, again.ended
	l.until(`document.querySelector('[data-member="newcomer"]') && document.getElementById("connection").hidden`)
}

func TestTheKeyboardAloneIsEnough(t *testing.T) {
	l := look(t, Admin)
	l.at("")
	l.until(`document.querySelectorAll(".tile").length === 3`)
	l.must(l.tab.Do(chromedp.Focus(chromedp.CSS(".tile[tabindex='0']"))))
	l.press(kb.ArrowRight)
	l.until(`document.activeElement.dataset.member === "prod-us"`)
	l.press(kb.End)
	l.until(`document.activeElement.dataset.member === "staging"`)
	l.press(kb.Enter)
	l.until(`document.querySelector("h1").textContent === "staging" && document.activeElement.tagName === "H1"`)
	l.says("shop/cart")
	l.must(l.tab.Do(chromedp.Focus(chromedp.CSS(".space .row a"))))
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
	l.must(l.tab.Do(chromedp.Focus(chromedp.CSS(".space .row a"))))
	l.press(kb.End)
	l.until(`document.activeElement.textContent.startsWith("shop/checkout")`)
}
