// Why a FleetPlacement's replicas are where they are, and where another policy would have them.
import { call, path, sentence } from "./api.js";
import { notice, section, table } from "./controls.js";
import { fill, h, throttled } from "./dom.js";
import { capacity, counted } from "./words.js";
import { slider } from "./whatif.js";

// placementWhy has the two sections. changed is called with the FleetPlacement whenever it has changed.
export function placementWhy(namespace, name) {
  const where = path("namespaces", namespace, "fleetplacements", name);
  const why = h("div", null, h("p", { class: "muted" }, "Loading…"));
  const hypothesis = whatIf(where);
  const element = h("div", { hidden: true }, section("Why", why), section("What if", hypothesis.element));
  let request = null;
  let again = false;
  let begun = false;

  // An answer that is under way is waited for, and asked for once more after it: where each change ended it, a FleetPlacement that
  // changes faster than it is explained would never be.
  const explain = throttled(1000, async () => {
    again = request !== null;
    if (again) return;
    const mine = new AbortController();
    request = mine;
    try {
      fill(why, reasons(await call("GET", `${where}:explain`, { signal: mine.signal })));
    } catch (failure) {
      if (!mine.signal.aborted) fill(why, notice("warn", sentence(failure)));
    }
    request = null;
    if (again && !mine.signal.aborted) explain();
  });
  return {
    element,
    changed(p) {
      element.hidden = false;
      if (!begun) hypothesis.begin(p);
      begun = true;
      explain();
    },
    close() { explain.stop(); request?.abort(); hypothesis.close(); },
  };
}

function reasons(answer) {
  const change = (m) => m.wouldChange.map((x) => h("p", null, `${x.obstacle}; ${x.change}, and it would have ${x.spot} on spot and ${x.onDemand} on on-demand.`));
  return [
    h("ul", null, answer.summary.map((text) => h("li", null, text))),
    answer.members.length > 0 && table("Why, by member", ["Member", "Why there", "Why on spot", "Why on on-demand", "What would have to change"],
      answer.members.map((m) => [m.name, m.whyMember, m.whySpot || "–", m.whyOnDemand || "–", m.wouldChange.length > 0 ? h("div", null, change(m)) : "–"])),
  ];
}

// whatIf is a form whose answer follows its sliders.
function whatIf(where) {
  const answer = h("div", { role: "status", "aria-live": "polite" }, h("p", { class: "muted" }, "Move a slider to ask."));
  let request = null;
  const sliders = { replicas: slider("placement-replicas", "Replicas", 20, ""), min_on_demand: slider("placement-floor", "On-demand floor", 10, ""),
    spot_percentage: slider("placement-share", "Spot share", 100, " %"), extra_spot: slider("placement-extra", "Extra on spot", 10, "") };
  const window = h("input", { id: "placement-window", type: "checkbox", on: { change: () => ask() } });
  for (const s of Object.values(sliders)) s.input.addEventListener("input", () => { s.touched = true; s.show(); ask(); });

  const ask = throttled(200, async () => {
    request?.abort();
    const mine = new AbortController();
    request = mine;
    const body = { ignore_window: window.checked };
    for (const [field, s] of Object.entries(sliders)) if (s.touched) body[field] = Number(s.input.value);
    try {
      fill(answer, result(await call("POST", `${where}:whatIf`, { body, signal: mine.signal })));
    } catch (failure) {
      if (!mine.signal.aborted) fill(answer, notice("bad", sentence(failure)));
    }
  });

  return {
    element: h("div", { class: "panel whatif" }, h("div", { class: "sliders" }, Object.values(sliders).map((s) => s.element),
      h("label", { for: "placement-window" }, "As if the window were open"), window, h("span")), answer),
    begin(p) {
      sliders.replicas.set(p.policy.replicas, Math.max(20, 2 * p.policy.replicas));
      sliders.min_on_demand.set(p.policy.minOnDemand, Math.max(10, p.policy.replicas, p.policy.minOnDemand));
      sliders.spot_percentage.set(p.policy.spotPercentage, 100);
      sliders.extra_spot.set(p.policy.extraSpot, Math.max(10, p.policy.extraSpot));
    },
    close() { ask.stop(); request?.abort(); },
  };
}

function result(answer) {
  const n = answer.firstMoves.length + answer.later;
  const now = new Map(answer.now.members.map((m) => [m.name, m]));
  return [
    answer.conditions.map((c) => notice("warn", `${c.type}: ${c.message}`)),
    h("p", null, h("strong", { "data-moves": n }, n === 0 ? "No replica would move." : `${counted(n, "move")} would be made.`),
      ` ${answer.spot} on spot and ${answer.onDemand} on on-demand in all, at ${cost(answer.costThen)} and not ${cost(answer.costNow)}.`,
      answer.unplaced > 0 && ` ${counted(answer.unplaced, "replica has", "replicas have")} no place.`),
    table("Now and then", ["Member", "Spot now", "then", "On-demand now", "then", "Why"], answer.then.map((m) => [
      m.name, now.get(m.name)?.spot.wanted ?? 0, m.spot.wanted, now.get(m.name)?.onDemand.wanted ?? 0, m.onDemand.wanted, m.reason])),
    answer.firstMoves.length > 0 && table("Those that would be made at once", ["Member", "Replicas", "On", "Why"],
      answer.firstMoves.map((m) => [m.member, m.by > 0 ? `+${m.by}` : String(m.by).replace("-", "−"), capacity(m.capacity), m.reason])),
  ];
}

const cost = (n) => (Math.round(10 * n) / 10).toLocaleString("en");
