// FleetPlacements: one workload over several members.
import { badge, bar, compare, facts, notice, search, section, table, trouble } from "./controls.js";
import { fill, h, link, throttled } from "./dom.js";
import { List } from "./list.js";
import { Live } from "./live.js";
import { placementWhy } from "./placementwhy.js";
import { ago, capacity, counted, fleetMemberState, placementState, seconds } from "./words.js";

const nameOfPlacement = (p) => `${p.namespace}/${p.name}`;
const follow = (query, changed) => new Live({ path: "v1/fleetplacements:watch", query, field: "placement", nameOf: nameOfPlacement, changed }).start();

const columns = [{ title: "Placement", size: "minmax(0, 1.6fr)" }, { title: "State", size: "8.5rem" }, { title: "Ready", size: "6rem", number: true },
  { title: "Spot", size: "6rem", number: true, wide: true }, { title: "On-demand", size: "6rem", number: true, wide: true },
  { title: "Members", size: "5rem", number: true, wide: true }, { title: "Why", size: "minmax(0, 2fr)", wide: true }];

const cells = (p) => [
  h("a", { href: link("placement", p.namespace, p.name), class: "cut" }, nameOfPlacement(p), h("small", null, ` ${p.target.kind}`)),
  badge(placementState(p), p.state), `${p.ready} of ${p.policy.replicas}`, `${p.spot.running} of ${p.spot.wanted}`, `${p.onDemand.running} of ${p.onDemand.wanted}`,
  p.members.length + p.hiddenMembers, h("span", { class: "cut", title: p.message }, p.message || p.reason || "–")];

const rank = ["STOPPED", "INCOMPLETE", "WAITING", "MOVING", "PENDING", "DELETING", "PAUSED", "PLACED"].map((state) => `FLEET_PLACEMENT_STATE_${state}`);

export function placementsView() {
  let text = "";
  const above = h("div");
  const count = h("span", { class: "muted", role: "status" });
  const list = new List({ label: "Placements", columns, cells, nameOf: nameOfPlacement, empty: "" });
  const element = h("div", null, h("h1", { tabindex: "-1" }, "Placements"),
    h("p", { class: "muted" }, "FleetPlacements: one workload over several members."),
    h("div", { class: "tools" }, search("Find a placement", (value) => { text = value; draw(); }), count), above, list.element);

  const draw = throttled(150, () => {
    const shown = [...live.items.values()].filter((p) => !text || `${nameOfPlacement(p)} ${p.target.kind} ${p.target.name}`.toLowerCase().includes(text))
      .sort((a, b) => rank.indexOf(a.state) - rank.indexOf(b.state) || compare(nameOfPlacement(a), nameOfPlacement(b)));
    count.textContent = `${shown.length.toLocaleString("en")} of ${counted(live.items.size, "placement")}`;
    fill(above, trouble(live));
    list.show(shown, live.synced ? "There is no FleetPlacement." : live.refused ? "" : "Loading…");
  });
  const live = follow({}, () => draw());
  draw();
  return { element, title: "Placements", close() { live.stop(); list.close(); draw.stop(); } };
}

export function placementView(namespace, name) {
  const body = h("div", null, h("p", { class: "muted" }, "Loading…"));
  const why = placementWhy(namespace, name);
  const element = h("div", null, h("p", { class: "crumbs" }, h("a", { href: link("placements") }, "Placements"), ` / ${namespace}`), h("h1", { tabindex: "-1" }, name), body, why.element);
  const draw = throttled(150, () => {
    const p = live.items.get(`${namespace}/${name}`);
    if (p) {
      fill(body, trouble(live), details(p));
      why.changed(p);
    } else if (live.synced || live.refused) fill(body, trouble(live) ?? notice("bad", "There is no such FleetPlacement, or you may not see it."));
  });
  const live = follow({ namespace, filter: `placement.name == ${JSON.stringify(name)}` }, () => draw());
  return { element, title: name, close() { live.stop(); draw.stop(); why.close(); } };
}

function details(p) {
  const wanted = p.policy;
  return [
    h("p", null, badge(placementState(p), p.state), " ", p.message || p.reason),
    h("div", { class: "bars" }, bar("spot", p.spot.running, p.spot.wanted), bar("on-demand", p.onDemand.running, p.onDemand.wanted)),
    facts(["Workload", `${p.target.kind} ${p.target.name}`], ["Ready", `${p.ready} of ${wanted.replicas}`], ["On-demand floor", wanted.minOnDemand],
      ["Spot share", `${wanted.spotPercentage} %`], p.insurance > 0 && ["Extra on spot, as insurance", p.insurance], p.unplaced > 0 && ["Without a place", p.unplaced],
      ["Grace for a lost member", seconds(wanted.clusterLossGrace) || "–"],
      wanted.pace?.windowSchedule && ["Moves only from", `${wanted.pace.windowSchedule} ${wanted.pace.windowTimeZone || "UTC"}, ${seconds(wanted.pace.windowDuration)}`],
      ["When deleted", wanted.onDelete === "Gather" ? `gathered into ${wanted.gatherInto || "one member"}` : "members keep what they have"], ["Created", ago(p.createdAt)]),
    section("Members", p.members.length === 0 ? h("p", { class: "muted" }, "There is none.") : table("Members", ["Member", "Tier", "State", "Spot", "On-demand", "Why"], p.members.map((m) => [
      h("a", { href: link("workload", m.name, p.namespace, p.target.kind, p.target.name) }, m.name), m.tier || "–", badge(fleetMemberState(m), m.state),
      counts(m.spot), counts(m.onDemand), m.reason])),
    p.hiddenMembers > 0 && h("p", { class: "muted" }, `${counted(p.hiddenMembers, "more member")} that you may not see.`)),
    section("Last moves", p.lastMoves.length === 0 ? h("p", { class: "muted" }, "There was none.") : table("Last moves", ["When", "Member", "Replicas", "On", "Why"],
      p.lastMoves.map((m) => [ago(m.movedAt), m.member, m.by > 0 ? `+${m.by}` : String(m.by).replace("-", "−"), capacity(m.capacity), m.reason]))),
    section("Conditions", table("Conditions", ["Type", "Status", "Reason", "Message", "Since"], p.conditions.map((x) => [x.type, x.status, x.reason, x.message, ago(x.lastTransitionTime)]))),
  ];
}

// counts says how many there are of how many are wanted, and how many of them are ready.
const counts = (c) => `${c.running} of ${c.wanted}${c.ready < c.running ? `, ${c.ready} ready` : ""}`;
