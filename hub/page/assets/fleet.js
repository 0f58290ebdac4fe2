// The fleet: each member is a tile.
import { call, path, PERMISSION_DENIED } from "./api.js";
import { badge, bar, compare, notice, search, trouble } from "./controls.js";
import { fill, h, link, throttled } from "./dom.js";
import { Live, nameOfWorkload, Poll } from "./live.js";
import { clusterState, counted, word } from "./words.js";

const states = ["CLUSTER_STATE_REFUSED", "CLUSTER_STATE_UNREACHABLE", "CLUSTER_STATE_DEGRADED", "CLUSTER_STATE_CONNECTING", "CLUSTER_STATE_READY"];

// allControllers are the queues of all members.
async function allControllers(signal) {
  const found = [];
  for (let token = ""; ;) {
    const answer = await call("GET", path("controllers"), { query: { page_size: 500, page_token: token }, signal });
    found.push(...answer.controllers);
    token = answer.nextPageToken;
    if (!token) return found;
  }
}

export function fleetView(clusters) {
  let text = "";
  let only = "";
  let queues = null; // by member; null: not known
  const tiles = new Tiles();
  const summary = h("div", { class: "summary", role: "group", "aria-label": "Members by state" });
  const above = h("div");
  const grid = tiles.grid;
  const element = h("div", null, h("div", { class: "title" }, h("h1", { tabindex: "-1" }, "Fleet"),
    search("Find a member", (value) => { text = value; draw(); })), summary, above, grid);

  const dry = new Live({ path: "v1/workloads:watch", query: { filter: 'workload.waits.exists(w, w.kind == "DRY")' },
    field: "workload", nameOf: nameOfWorkload, changed: () => draw() }).start();
  const poll = new Poll(10_000, allControllers, (all) => { queues = perMember(all, (c) => c.queued + c.running); draw(); },
    (failure) => { if (failure.code === PERMISSION_DENIED) queues = null; }).start();

  const draw = throttled(150, () => {
    const members = [...clusters.items.values()];
    const without = perMember([...dry.items.values()], () => 1);
    drawSummary(members);
    fill(above, trouble(clusters), clusters.synced && members.length === 0 && !clusters.refused
      ? notice("calm", "You see no member: none is registered, or you may list none.") : null);
    const shown = members.filter((c) => (!only || c.state === only) && (!text || c.name.includes(text)))
      .sort((a, b) => states.indexOf(a.state) - states.indexOf(b.state) || compare(a.name, b.name));
    tiles.place(shown, (c) => ({ cluster: c, queue: queues?.get(c.name) ?? (queues ? 0 : null), dry: without.get(c.name) ?? 0 }));
  });

  function drawSummary(members) {
    const button = (state, n) => h("button", { id: `only-${state || "all"}`, type: "button", "aria-pressed": String(only === state),
      on: { click: () => { only = state; draw(); } } }, h("strong", null, n.toLocaleString("en")), " ", state ? word(state, "CLUSTER_STATE_") : "Members");
    fill(summary, button("", members.length), states.map((state) => [state, members.filter((c) => c.state === state).length])
      .filter(([state, n]) => n > 0 || only === state).map(([state, n]) => button(state, n)));
  }

  draw();
  return { element, title: "Fleet", changed: draw, close() { dry.stop(); poll.stop(); draw.stop(); tiles.close(); } };
}

function perMember(list, amount) {
  const sums = new Map();
  for (const item of list) sums.set(item.cluster, (sums.get(item.cluster) ?? 0) + amount(item));
  return sums;
}

const first = 40; // tiles that are whole from the start; no screen shows more at once

// Tiles are those of all members. A fleet may have a thousand: where they are out of sight they are links with a name, for the search
// of the browser and for the keyboard, and nothing else.
class Tiles {
  constructor() {
    this.known = new Map(); // by member: {element, near, drawn, and what is to be shown}
    this.grid = h("div", { class: "tiles", role: "list", "aria-label": "Members", on: { keydown: (event) => step(event, this.grid) } });
    this.members = new WeakMap(); // by element
    this.sight = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const known = this.members.get(target);
        known.near = isIntersecting;
        this.draw(known);
      }
    }, { rootMargin: "600px" });
  }

  close() {
    this.sight.disconnect();
  }

  // place brings the tiles into the order of the members; only those that differ are made again.
  place(members, detail) {
    const gone = new Set(this.known.keys());
    let before = null;
    members.forEach((member, i) => {
      gone.delete(member.name);
      const known = this.known.get(member.name) ?? this.add(member, i < first);
      const shown = detail(member);
      if (known.cluster !== shown.cluster || known.queue !== shown.queue || known.dry !== shown.dry) {
        Object.assign(known, shown, { drawn: false });
        this.draw(known);
      }
      const next = before ? before.nextSibling : this.grid.firstChild;
      if (next !== known.element) this.grid.insertBefore(known.element, next);
      before = known.element;
    });
    for (const name of gone) {
      this.sight.unobserve(this.known.get(name).element);
      this.known.get(name).element.remove();
      this.known.delete(name);
    }
    rove(this.grid);
  }

  add(member, near) {
    const known = { near, drawn: false, element: h("div", { role: "listitem" }, near ? null : frame(member, member.name)) };
    this.known.set(member.name, known);
    this.members.set(known.element, known);
    this.sight.observe(known.element);
    return known;
  }

  draw(known) {
    if (!known.near || known.drawn) return;
    const before = known.element.firstChild;
    const focused = known.element.contains(document.activeElement);
    known.element.replaceChildren(tile(known));
    known.element.firstChild.tabIndex = before?.tabIndex ?? -1;
    if (focused) known.element.firstChild.focus();
    known.drawn = true;
  }
}

// frame is the link of a tile.
const frame = (cluster, ...content) => h("a", { class: `tile ${cluster.state === "CLUSTER_STATE_READY" ? "" : "off"}`, href: link("member", cluster.name), tabindex: "-1",
  "data-member": cluster.name }, ...content);

function tile({ cluster, queue, dry }) {
  const w = cluster.workloads;
  return frame(cluster,
    h("span", { class: "line" }, h("strong", { class: "cut" }, cluster.name), badge(clusterState(cluster), cluster.state)),
    w ? [bar("spot", w.spotActual, w.spotWanted), bar("on-demand", w.onDemandActual, w.onDemandWanted)] : h("span", { class: "muted" }, "Workloads are not known."),
    h("span", { class: "line muted" }, h("span", null, w ? counted(w.managed, "workload") : ""), h("span", null, queue === null ? "" : `queue ${queue}`)),
    dry > 0 && h("span", { class: "warn" }, `${counted(dry, "workload")} without capacity`),
    cluster.state !== "CLUSTER_STATE_READY" && h("span", { class: "small cut" }, cluster.message || cluster.reason));
}

// rove leaves one tile for Tab; the arrows lead to the others.
function rove(grid) {
  const all = [...grid.querySelectorAll("a")];
  const current = all.find((a) => a === document.activeElement) ?? all[0];
  for (const a of all) {
    const wanted = a === current ? 0 : -1;
    if (a.tabIndex !== wanted) a.tabIndex = wanted;
  }
}

function step(event, grid) {
  const all = [...grid.querySelectorAll("a")];
  const at = all.indexOf(document.activeElement);
  const across = all.filter((a) => a.parentElement.offsetTop === all[0].parentElement.offsetTop).length || 1;
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across, Home: -Infinity, End: Infinity }[event.key];
  if (by === undefined || at < 0) return;
  event.preventDefault();
  all[Math.min(all.length - 1, Math.max(0, at + by))].focus();
  rove(grid);
}
