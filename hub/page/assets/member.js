// One member: state, conditions, controllers and workloads.
import { call, path, sentence } from "./api.js";
import { badge, bar, choice, facts, notice, search, section, shownWorkloads, table, trouble, workloadCells, workloadColumns, workloadStates } from "./controls.js";
import { fill, h, throttled } from "./dom.js";
import { eventList } from "./events.js";
import { List } from "./list.js";
import { Live, nameOfWorkload, Poll } from "./live.js";
import { ago, clusterState, counted } from "./words.js";

export function memberView(clusters, name) {
  let text = "";
  let state = "";
  let controllers = null;
  let refused = null;
  const head = h("div");
  const queues = h("div");
  const above = h("div");
  const count = h("span", { class: "muted", role: "status" });
  const list = new List({ label: `Workloads of ${name}`, columns: workloadColumns, cells: workloadCells, nameOf: nameOfWorkload, empty: "No workload is shown." });
  const events = eventList(name);
  const element = h("div", null, h("h1", { tabindex: "-1" }, name), head,
    section("Workloads", h("div", { class: "tools" }, search("Find a workload", (value) => { text = value; drawList(); }),
      choice("State", workloadStates, state, (value) => { state = value; drawList(); }), count), above, list.element),
    section("Controllers", queues), section("Events", events.element));

  const live = new Live({ path: "v1/workloads:watch", query: { cluster: name }, field: "workload", nameOf: nameOfWorkload, changed: () => drawList() }).start();
  const poll = new Poll(5_000, (signal) => call("GET", path("controllers"), { query: { cluster: name, page_size: 500 }, signal }),
    (answer) => { controllers = answer.controllers; drawQueues(); }, (failure) => { refused = failure; drawQueues(); }).start();

  const drawList = throttled(150, () => {
    const shown = shownWorkloads(live, text, state);
    count.textContent = `${shown.length.toLocaleString("en")} of ${counted(live.items.size, "workload")}`;
    fill(above, trouble(live));
    list.show(shown, live.synced ? "No workload is shown." : live.refused ? "" : "Loading…");
  });

  function drawQueues() {
    fill(queues, refused && !controllers ? notice("warn", sentence(refused)) : table("Controllers", ["Controller", "Kind", "Objects", "Queued", "Running", "Held"],
      (controllers ?? []).map((c) => [c.name, c.kind, c.objects, c.queued, c.running, c.held || "–"])));
  }

  const changed = throttled(150, () => fill(head, header(clusters, name)));
  changed();
  drawList();
  return { element, title: name, changed, close() { live.stop(); poll.stop(); events.close(); list.close(); drawList.stop(); changed.stop(); } };
}

function header(clusters, name) {
  const c = clusters.items.get(name);
  if (!c) {
    return trouble(clusters) ?? (clusters.synced ? notice("bad", "There is no such member, or you may not see it.") : h("p", { class: "muted" }, "Loading…"));
  }
  const w = c.workloads;
  return [
    h("p", null, badge(clusterState(c), c.state), " ", h("strong", null, c.reason), c.stateChangedAt && [", changed ", ago(c.stateChangedAt)]),
    c.message && h("p", null, c.message),
    w && h("div", { class: "bars" }, bar("spot", w.spotActual, w.spotWanted), bar("on-demand", w.onDemandActual, w.onDemandWanted)),
    facts(["Server", c.server || "–"], ["Kubernetes", c.kubernetesVersion || "–"], ["Owner", c.owner || "nobody"],
      ["Last probe", ago(c.lastProbeAt)], ["Registered", ago(c.registeredAt)]),
    table("Conditions", ["Type", "Status", "Reason", "Message", "Since"], c.conditions.map((x) => [x.type, x.status, x.reason, x.message, ago(x.lastTransitionTime)])),
    c.kinds.some((k) => !k.engaged) && table("Kinds that are not cached", ["Kind", "Why"], c.kinds.filter((k) => !k.engaged).map((k) => [k.name, k.reason])),
  ];
}
