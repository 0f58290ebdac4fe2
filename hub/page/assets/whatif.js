// What another policy would do to a workload.
import { call, sentence, workloadPath } from "./api.js";
import { badge, moves, notice, table } from "./controls.js";
import { fill, h, throttled } from "./dom.js";
import { counted, workloadState } from "./words.js";

// whatIf is a form whose answer follows its sliders. begin sets them to what a workload has.
export function whatIf(key) {
  const answer = h("div", { role: "status", "aria-live": "polite" }, h("p", { class: "muted" }, "Move a slider to ask."));
  let request = null;
  const share = slider("whatif-share", "Spot share", 100, " %");
  const floor = slider("whatif-floor", "On-demand floor", 10, "");
  const replicas = slider("whatif-replicas", "Replicas", 20, "");
  const strategy = h("select", { id: "whatif-strategy", on: { change: () => ask() } }, h("option", { value: "MOVE_STRATEGY_EVICT" }, "evict"), h("option", { value: "MOVE_STRATEGY_RELEASE" }, "release"));
  const window = h("input", { id: "whatif-window", type: "checkbox", on: { change: () => ask() } });
  for (const s of [share, floor, replicas]) s.input.addEventListener("input", () => { s.touched = true; s.show(); ask(); });

  const ask = throttled(200, async () => {
    request?.abort();
    const mine = new AbortController();
    request = mine;
    const body = { ignore_window: window.checked, strategy: strategy.value };
    if (share.touched) body.spot_percentage = Number(share.input.value);
    if (floor.touched) body.min_on_demand = Number(floor.input.value);
    if (replicas.touched) body.replicas = Number(replicas.input.value);
    try {
      const found = await call("POST", `${workloadPath(key)}:whatIf`, { body, signal: mine.signal });
      fill(answer, result(found));
    } catch (failure) {
      if (!mine.signal.aborted) fill(answer, notice("bad", sentence(failure)));
    }
  });

  const element = h("div", { class: "panel whatif" },
    h("div", { class: "sliders" }, share.element, floor.element, replicas.element,
      h("label", { for: "whatif-strategy" }, "Strategy"), strategy, h("span"),
      h("label", { for: "whatif-window" }, "As if the window were open"), window, h("span")), answer);
  return {
    element,
    begin(w) {
      const p = w.placement;
      share.set(p.spotPercentage ?? 0, 100);
      floor.set(p.minOnDemand ?? 0, Math.max(10, p.replicas, p.minOnDemand ?? 0));
      replicas.set(p.replicas, Math.max(20, 2 * p.replicas));
      if (p.strategy === "MOVE_STRATEGY_RELEASE") strategy.value = p.strategy;
    },
    close() { ask.stop(); request?.abort(); },
  };
}

// slider is a labelled range with its value beside it.
export function slider(id, label, max, unit) {
  const input = h("input", { id, type: "range", min: 0, max, step: 1, value: 0 });
  const output = h("output", { for: id });
  const show = () => { output.textContent = input.value + unit; input.setAttribute("aria-valuetext", input.value + unit); };
  show();
  return { element: [h("label", { for: id }, label), input, output], input, show, touched: false,
    set(value, most) { input.max = most; input.value = value; show(); } };
}

function result(found) {
  const row = (name, w) => [name, badge(workloadState(w), w.state), `${w.placement.spotActual} of ${w.placement.spotWanted}`,
    `${w.placement.onDemandActual} of ${w.placement.onDemandWanted}`, w.placement.reason];
  return [
    h("p", null, h("strong", { "data-moves": found.moves }, found.moves === 0 ? "No replica would move." : `${counted(found.moves, "replica")} would move.`)),
    table("Now and then", ["", "State", "Spot", "On-demand", "Why"], [row("Now", found.now), row("Then", found.then)]),
    found.firstMoves.length > 0 && moves("Those that would go at once", found.firstMoves),
  ];
}
