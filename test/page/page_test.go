package page

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

func TestSigningInAndOut(t *testing.T) {
	l := look(t, "")
	l.at("")
	l.says("Sign in to Plimsoll")
	l.act(chromedp.SendKeys(chromedp.CSS("#token"), "somebody-elses-token"+kb.Enter))
	l.says("the bearer token was not accepted")
	l.act(chromedp.SendKeys(chromedp.CSS("#token"), Admin+kb.Enter))
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

func TestAnAPIThatAsksForNoTokenIsOpenAtOnce(t *testing.T) {
	l := lookAt(t, nil, "")
	l.at("")
	l.until(readyTile)
	l.until(`document.querySelector("header nav") && !document.querySelector("header button")`)
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
	l.says("14 min ago") // since when it fails
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

// The API lists the pods of a workload in pages.
func TestAWorkloadShowsAllItsPods(t *testing.T) {
	l := look(t, Admin)
	l.AddWorkload("staging", "many", "crowd", 1200, 70, 2)
	l.at("workload/staging/many/Deployment/crowd")
	l.until(`document.querySelectorAll(".slot").length === 400`)
	l.says("800 more slots.")
	l.until(`document.querySelector('[role="table"][aria-label="Pods"]').getAttribute("aria-rowcount") === "1201"`)
}
