// What happened in the last day, the newest first, and what happens.
import { badge, choice, search, trouble } from "./controls.js";
import { fill, h, link, throttled } from "./dom.js";
import { List } from "./list.js";
import { Live } from "./live.js";
import { ago, capacity, counted, eventType } from "./words.js";

const filters = {
  "": ["all", ""],
  moves: ["moves", 'event.type == "MOVE"'],
  shortages: ["capacity shortages", 'event.type in ["INSUFFICIENT_CAPACITY_BEGAN", "INSUFFICIENT_CAPACITY_ENDED"]'],
  interruptions: ["interruptions", 'event.type == "INTERRUPTION"'],
  states: ["member states", 'event.type == "CLUSTER_STATE"'],
  orders: ["operations by people", 'event.type == "REQUEUE"'],
};

const columns = [{ title: "When", size: "5.5rem" }, { title: "Event", size: "8.5rem" }, { title: "Member", size: "minmax(0, 1fr)", wide: true },
  { title: "About", size: "minmax(0, 1.6fr)" }, { title: "What happened", size: "minmax(0, 3fr)", wide: true }];

const nameOfEvent = (e) => `${e.cluster}/${e.id}`;

function cells(e) {
  const text = e.user ? `${e.message} (by ${e.user})` : e.message;
  return [ago(e.at), badge(eventType(e), e.type), h("a", { href: link("member", e.cluster), class: "cut" }, e.cluster), about(e), h("span", { class: "cut", title: text }, text || e.reason || "–")];
}

// about is the workload or object of an event, with the pod, node or capacity type.
function about(e) {
  const name = e.namespace ? `${e.namespace}/${e.name}` : e.name;
  const subject = e.type.startsWith("EVENT_TYPE_INSUFFICIENT_CAPACITY_") ? capacity(e.subject) : e.type === "EVENT_TYPE_CLUSTER_STATE" ? "" : e.subject;
  const text = [name, name && subject && " ", subject && h("small", null, subject)];
  if (!name && !subject) return h("span", { class: "muted" }, "–");
  const title = [name, subject].filter(Boolean).join(" ");
  return e.namespace && e.kind && e.name ? h("a", { href: link("workload", e.cluster, e.namespace, e.kind, e.name), class: "cut", title }, text) : h("span", { class: "cut", title }, text);
}

const moments = new WeakMap();

// moment is when an event was, in ms; texts of the same moment differ in their digits, and do not compare.
function moment(e) {
  if (!moments.has(e)) moments.set(e, Date.parse(e.at));
  return moments.get(e);
}

const newestFirst = (a, b) => moment(b) - moment(a) || (a.id < b.id ? 1 : -1);

// eventList is a live list of events, of one member or of all, with its tools.
export function eventList(cluster = "") {
  let text = "";
  let chosen = "";
  let live = null;
  const above = h("div");
  const count = h("span", { class: "muted", role: "status" });
  const list = new List({ label: "Events", columns, cells, nameOf: nameOfEvent, empty: "" });
  const element = h("div", null, h("div", { class: "tools" }, search("Find an event", (value) => { text = value; draw(); }),
    choice("Show", Object.entries(filters).map(([key, [title]]) => [key, title]), chosen, (value) => { chosen = value; follow(); }), count), above, list.element);

  const draw = throttled(150, () => {
    const shown = [...live.items.values()].filter((e) => !text || `${e.cluster}/${e.namespace}/${e.name} ${e.subject} ${e.message} ${e.user}`.toLowerCase().includes(text))
      .sort(newestFirst);
    count.textContent = `${shown.length.toLocaleString("en")} of ${counted(live.items.size, "event")}`;
    fill(above, trouble(live));
    list.show(shown, live.synced ? "Nothing of this kind has happened lately." : live.refused ? "" : "Loading…");
  });

  // follow watches those of the chosen kind: what is not wanted is not sent.
  function follow() {
    live?.stop();
    live = new Live({ path: "v1/events:watch", query: { cluster, filter: filters[chosen][1] }, field: "event", nameOf: nameOfEvent, changed: () => draw() }).start();
    draw();
  }

  follow();
  return { element, close() { live.stop(); list.close(); draw.stop(); } };
}

export function eventsView() {
  const events = eventList();
  const element = h("div", null, h("h1", { tabindex: "-1" }, "Events"), events.element,
    h("p", { class: "muted small" }, "The hub remembers a day, and forgets when it restarts."));
  return { element, title: "Events", close: events.close };
}
