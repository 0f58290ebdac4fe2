// All workloads that may be seen.
import { choice, search, shownWorkloads, trouble, workloadCells, workloadColumns, workloadStates } from "./controls.js";
import { fill, h, throttled } from "./dom.js";
import { List } from "./list.js";
import { Live, nameOfWorkload } from "./live.js";
import { bare, counted } from "./words.js";

export function workloadsView() {
  let text = "";
  let state = "";
  let live = null;
  const above = h("div");
  const count = h("span", { class: "muted", role: "status" });
  const list = new List({ label: "Workloads", columns: workloadColumns, cells: workloadCells, nameOf: nameOfWorkload, empty: "No workload is shown." });
  const element = h("div", null, h("h1", { tabindex: "-1" }, "Workloads"),
    h("div", { class: "tools" }, search("Find a workload", (value) => { text = value; draw(); }),
      choice("State", workloadStates, state, (value) => { state = value; follow(); }), count), above, list.element);

  const draw = throttled(150, () => {
    const shown = shownWorkloads(live, text, "");
    count.textContent = `${shown.length.toLocaleString("en")} of ${counted(live.items.size, "workload")}`;
    fill(above, trouble(live));
    list.show(shown, live.synced ? "No workload is shown." : live.refused ? "" : "Loading…");
  });

  // follow watches those in the chosen state: what is not wanted is not sent.
  function follow() {
    live?.stop();
    const filter = state ? `workload.state == "${bare(state, "WORKLOAD_STATE_")}"` : "";
    live = new Live({ path: "v1/workloads:watch", query: { filter }, field: "workload", nameOf: nameOfWorkload, changed: () => draw() }).start();
    draw();
  }

  follow();
  return { element, title: "Workloads", close() { live.stop(); list.close(); draw.stop(); } };
}
