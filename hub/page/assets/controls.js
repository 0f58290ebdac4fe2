// Parts that several views show.
import { sentence } from "./api.js";
import { h, link } from "./dom.js";
import { ago, capacity, counted, source, tones, waitKind, workloadState } from "./words.js";

// badge is a state in a word, with its tone.
export const badge = (text, state) => h("span", { class: `badge ${tones[state] ?? "calm"}` }, text);

// bar shows how many replicas of a capacity type are there and wanted.
export function bar(type, actual, wanted) {
  const most = Math.max(actual, wanted, 1);
  return h("div", { class: `bar ${type}` },
    h("span", { class: "type" }, type),
    h("span", { class: "track", "aria-hidden": "true" },
      h("span", { class: "part", style: { width: `${(100 * actual) / most}%` } }),
      h("span", { class: "mark", style: { left: `${(100 * wanted) / most}%` } })),
    h("span", { class: "figure" }, `${actual} of ${wanted}`));
}

// notice is a box that says what is wrong or missing.
export const notice = (tone, ...text) => h("p", { class: `notice ${tone}`, role: "note" }, ...text);

// trouble is what keeps a watch from being whole; null: nothing.
export function trouble(live) {
  if (live.refused) return notice("bad", sentence(live.refused));
  if (live.full) return notice("warn", "There are more than this page shows. Choose a member or a filter.");
  if (live.unreachable.length === 0) return null;
  const named = live.unreachable.slice(0, 5).map((u) => `${u.member || "all members"} (${u.reason})`).join(", ");
  const more = live.unreachable.length > 5 ? ` and ${live.unreachable.length - 5} more` : "";
  return notice("warn", `Missing or old, from ${counted(live.unreachable.length, "member")}: ${named}${more}.`);
}

// facts is a list of names and values.
export const facts = (...pairs) => h("dl", { class: "facts" },
  pairs.filter(Boolean).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));

// table is a short table.
export const table = (caption, heads, rows) => h("div", { class: "wrap" }, h("table", null, h("caption", null, caption),
  h("thead", null, h("tr", null, heads.map((text) => h("th", { scope: "col" }, text)))),
  h("tbody", null, rows.map((cells) => h("tr", null, cells.map((cell) => h("td", null, cell)))))));

// section is a part of a view under a heading.
export const section = (title, ...content) => h("section", { "aria-label": title }, h("h2", null, title), ...content);

// search is a field that narrows what is shown, at once. The key / leads to it.
export function search(label, changed) {
  const input = h("input", { type: "search", class: "search", autocomplete: "off", spellcheck: "false", placeholder: label, "aria-label": label,
    on: { input: () => changed(input.value.trim().toLowerCase()) } });
  return input;
}

// choice is a select of [value, text] pairs.
export function choice(label, options, value, changed) {
  const select = h("select", { on: { change: () => changed(select.value) } },
    options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  return h("label", { class: "choice" }, label, " ", select);
}

// workloadColumns and workloadCells are a workload in a list.
export const workloadColumns = [
  { title: "Workload", size: "minmax(0, 2fr)" }, { title: "Member", size: "minmax(0, 1fr)", wide: true }, { title: "State", size: "8.5rem" },
  { title: "Spot", size: "6rem", number: true, wide: true }, { title: "On-demand", size: "6rem", number: true, wide: true },
  { title: "Waits for", size: "minmax(0, 1.5fr)", wide: true },
];

export function workloadCells(w) {
  const p = w.placement ?? {};
  return [
    h("a", { href: link("workload", w.cluster, w.namespace, w.kind, w.name), class: "cut" }, `${w.namespace}/${w.name}`, h("small", null, ` ${w.kind}`)),
    h("a", { href: link("member", w.cluster), class: "cut" }, w.cluster),
    badge(workloadState(w), w.state),
    `${p.spotActual ?? 0} of ${p.spotWanted ?? 0}`, `${p.onDemandActual ?? 0} of ${p.onDemandWanted ?? 0}`,
    h("span", { class: "cut" }, w.waits.map(waitKind).join(", ") || "–"),
  ];
}

// shownWorkloads are those that pass a search and a choice of state, the ones with something to see first.
export function shownWorkloads(live, text, state) {
  const found = [...live.items.values()].filter((w) => (!state || w.state === state) &&
    (!text || `${w.cluster}/${w.namespace}/${w.name} ${w.kind}`.toLowerCase().includes(text)));
  return found.sort((a, b) => rank[a.state] - rank[b.state] || compare(a.cluster, b.cluster) || compare(a.namespace, b.namespace) || compare(a.name, b.name));
}

const rank = { WORKLOAD_STATE_INVALID: 0, WORKLOAD_STATE_WAITING: 1, WORKLOAD_STATE_READ_ONLY: 2, WORKLOAD_STATE_MOVING: 3,
  WORKLOAD_STATE_UNMANAGED: 4, WORKLOAD_STATE_CONVERGED: 5, WORKLOAD_STATE_OFF: 6, WORKLOAD_STATE_UNSPECIFIED: 7 };

export const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

export const workloadStates = [["", "all"], ["WORKLOAD_STATE_WAITING", "waiting"], ["WORKLOAD_STATE_MOVING", "moving"],
  ["WORKLOAD_STATE_INVALID", "invalid"], ["WORKLOAD_STATE_READ_ONLY", "read only"], ["WORKLOAD_STATE_UNMANAGED", "unmanaged"], ["WORKLOAD_STATE_CONVERGED", "converged"]];

// policy says a value and where it comes from.
export const policy = (value, from, unit = "") => (value === undefined || value === null ? "not set" : `${value}${unit} (${source(from)})`);

// moves is a table of moves.
export const moves = (caption, list) => table(caption, ["When", "Pod", "From", "How", "Why"], list.map((m) => [
  ago(m.movedAt), m.pod, capacity(m.from), { MOVE_STRATEGY_RELEASE: "released" }[m.strategy] ?? "evicted", m.reason]));
