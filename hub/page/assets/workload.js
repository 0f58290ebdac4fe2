// One workload: its slots, plan, waits, moves and why.
import { call, sentence, workloadPath } from "./api.js";
import { badge, bar, facts, moves, notice, policy, section, table, trouble } from "./controls.js";
import { fill, h, link, throttled } from "./dom.js";
import { List } from "./list.js";
import { Live, nameOfWorkload, Poll } from "./live.js";
import { requeueButton } from "./requeue.js";
import { ago, capacity, counted, seconds, waitKind, word, workloadState } from "./words.js";
import { whatIf } from "./whatif.js";

const mostSquares = 400;
const mostPods = 4000; // they are asked for again and again

export function workloadView(key) {
  let failure = null;
  let shown = null;
  const head = h("div");
  const pods = new List({ label: "Pods", columns: podColumns, cells: podCells, nameOf: (pod) => pod.name, empty: "There is no pod." });
  const slots = h("div");
  const why = h("div");
  const hypothesis = whatIf(key);
  const element = h("div", null, h("p", { class: "crumbs" }, h("a", { href: link("member", key.cluster) }, key.cluster), ` / ${key.namespace} / ${key.kind}`),
    h("div", { class: "title" }, h("h1", { tabindex: "-1" }, key.name), requeueButton(() => workloadPath(key), key.name)), head,
    section("Slots", slots), why, section("What if", hypothesis.element), section("Pods", pods.element));

  // The watch shows when something has changed; pods and moves are only in the whole answer.
  const live = new Live({ path: "v1/workloads:watch", field: "workload", nameOf: nameOfWorkload, changed: () => refresh(),
    query: { cluster: key.cluster, namespace: key.namespace, filter: `workload.name == ${JSON.stringify(key.name)} && workload.kind == ${JSON.stringify(key.kind)}` } }).start();
  const ask = (signal) => whole(workloadPath(key), signal);
  const take = (answer) => { failure = null; draw(answer); };
  const failed = (cause) => { failure = cause; draw(null); };
  const poll = new Poll(10_000, ask, take, failed).start();
  const refresh = throttled(250, () => ask(poll.request.signal).then(take, (cause) => { if (!poll.request.signal.aborted) failed(cause); }));

  function draw(answer) {
    if (!answer) {
      fill(head, notice("bad", sentence(failure)), trouble(live));
      return;
    }
    const w = answer.workload;
    fill(head, header(w, answer));
    fill(slots, squares(w));
    fill(why, explanation(w));
    pods.show(w.pods);
    if (!shown) hypothesis.begin(w);
    shown = w;
  }

  fill(head, h("p", { class: "muted" }, "Loading…"));
  return { element, title: key.name, close() { live.stop(); poll.stop(); pods.close(); refresh.stop(); hypothesis.close(); } };
}

// whole is a workload with its pods, which come in pages. partial: there are more pods.
async function whole(where, signal) {
  const answer = await call("GET", where, { signal });
  let token = answer.nextPageToken;
  while (token && answer.workload.pods.length < mostPods) {
    const more = await call("GET", where, { query: { page_token: token, read_mask: "pods" }, signal });
    answer.workload.pods.push(...more.workload.pods);
    token = more.nextPageToken;
  }
  return { ...answer, partial: Boolean(token) };
}

function header(w, answer) {
  const p = w.placement;
  return [
    answer.partial && notice("calm", `It has more pods than the ${w.pods.length.toLocaleString("en")} that are shown.`),
    (answer.unreachable ?? []).length > 0 && notice("warn", `This may be old: ${answer.unreachable.map((u) => u.reason).join(", ")}.`),
    h("p", null, badge(workloadState(w), w.state), " ", p.reason),
    p.problems.length > 0 && table("Invalid annotations", ["Key", "Value", "Rule"], p.problems.map((x) => [h("code", null, x.key), h("code", null, x.value), x.rule])),
    h("div", { class: "bars" }, bar("spot", p.spotActual, p.spotWanted), bar("on-demand", p.onDemandActual, p.onDemandWanted)),
    facts(["Replicas", p.replicas], ["Spot share", policy(p.spotPercentage, p.spotPercentageSource, " %")], ["On-demand floor", policy(p.minOnDemand, p.minOnDemandSource)],
      p.unassigned > 0 && ["Of unknown capacity", p.unassigned], p.pending > 0 && ["Not ready", p.pending], p.interrupted > 0 && ["On nodes being terminated", p.interrupted],
      p.released > 0 && ["Released", p.released], ["Moves", word(p.strategy, "MOVE_STRATEGY_").toLowerCase()], p.paused && ["Paused", "by a person"],
      p.unprotected && ["Unprotected", "no PodDisruptionBudget keeps the on-demand floor"],
      p.readOnlyBy && ["Read-only", p.readOnlyBy], ["Pending timeout", seconds(p.pendingTimeout) || "–"],
      p.window && ["Window", `${p.window.schedule} ${p.window.timeZone}, ${seconds(p.window.duration)}${p.window.open ? ", open" : ""}`],
      ["Next look", p.nextCheckAt ? ago(p.nextCheckAt) : "on a change"], ["As of", ago(answer.asOf)]),
  ];
}

// squares are the slots in their order: the colour and the letter are where the replica is, the frame says that it is not ready, the
// corner that it belongs elsewhere.
function squares(w) {
  const held = w.pods.filter((pod) => pod.slot !== null && pod.slot !== undefined).sort((a, b) => a.slot - b.slot);
  const others = w.pods.length - held.length;
  return [
    h("ol", { class: "slots", "aria-label": "Slots" }, held.slice(0, mostSquares).map((pod) => {
      const misplaced = pod.capacityTypeActual !== pod.capacityTypeWanted;
      const text = `Slot ${pod.slot}: ${pod.name}, ${capacity(pod.capacityTypeActual)}${misplaced ? `, belongs on ${capacity(pod.capacityTypeWanted)}` : ""}${pod.ready ? "" : ", not ready"}`;
      return h("li", { class: `slot ${capacity(pod.capacityTypeActual)} ${misplaced ? "misplaced" : ""} ${pod.ready ? "" : "unready"}`, title: text, "data-slot": pod.slot },
        h("span", { "aria-hidden": "true" }, { spot: "S", "on-demand": "D" }[capacity(pod.capacityTypeActual)] ?? "?"), h("span", { class: "hidden" }, text));
    })),
    h("p", { class: "muted small" }, "S: on spot, D: on on-demand; dashed: not ready; marked corner: belongs on the other.",
      held.length > mostSquares && ` ${counted(held.length - mostSquares, "more slot")}.`, others > 0 && ` ${counted(others, "pod holds", "pods hold")} no slot.`),
  ];
}

function explanation(w) {
  return [
    section("Why", w.explanation.length === 0 ? h("p", { class: "muted" }, "There is nothing to explain.") : h("ul", null, w.explanation.map((text) => h("li", null, text)))),
    section("Waits", w.waits.length === 0 ? h("p", { class: "muted" }, "It waits for nothing.") : table("Waits", ["For", "What", "Replicas", "Since", "Until", "Why"],
      w.waits.map((x) => [waitKind(x), x.subject || "–", x.replicas || "–", ago(x.since), ago(x.until), x.reason]))),
    section("Last moves", w.lastMoves.length === 0 ? h("p", { class: "muted" }, "The owner remembers none.") : moves("Last moves", w.lastMoves)),
  ];
}

const podColumns = [{ title: "Pod", size: "minmax(0, 2fr)" }, { title: "Slot", size: "4rem", number: true }, { title: "On", size: "6rem" },
  { title: "Node", size: "minmax(0, 1.5fr)", wide: true }, { title: "Phase", size: "7rem", wide: true }, { title: "Why", size: "minmax(0, 2fr)", wide: true }];

const podCells = (pod) => [h("span", { class: "cut" }, pod.name), pod.slot ?? "–", capacity(pod.capacityTypeActual),
  h("span", { class: "cut" }, pod.node || "–"), pod.ready ? "Ready" : pod.phase || "–", h("span", { class: "cut", title: pod.reason }, pod.reason || "–")];
