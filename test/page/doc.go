// Package page holds the hub's web page to what it promises, in real headless Chromium, against the real API over HTTP. Behind the API
// stands a world of members and workloads that a test changes as it likes, so that each state can be shown at once.
//
//   - world.go, world_workloads.go, world_operations.go, world_placements.go: the members, workloads, keys, orders and FleetPlacements, behind the API's ports.
//   - people.go: who signs in, and what they may do.
//   - site.go: the API and the page on real listeners with TLS.
//   - browser.go: Chromium.
//   - measure.go: what `make bench` measures of the page.
//
// Chromium is found as `chromium`, or where PLIMSOLL_CHROMIUM says. Without it the tests are skipped, unless REQUIRE_CHROMIUM=1.
package page
