// Keys whose last reconcile failed, the ones that have failed most often first.
import { call, objectPath, sentence } from "./api.js";
import { choice, compare, notice, search, trouble } from "./controls.js";
import { fill, h, link, throttled } from "./dom.js";
import { List } from "./list.js";
import { Live, nameOfObject } from "./live.js";
import { requeueButton } from "./requeue.js";
import { ago, counted, outcome, word } from "./words.js";

const filters = {
  failing: ["failing", 'object.last_outcome in ["ERROR", "TERMINAL", "PANIC", "TIMEOUT"]'],
  held: ["held", 'object.state == "HELD"'],
  waiting: ["waiting", 'object.state == "WAITING"'],
};

const columns = [{ title: "Object", size: "minmax(0, 1.5fr)" }, { title: "Member", size: "minmax(0, 1fr)", wide: true }, { title: "Outcome", size: "6rem", wide: true },
  { title: "Tries", size: "3.5rem", number: true, wide: true }, { title: "Since", size: "6rem", wide: true }, { title: "Error", size: "minmax(0, 2fr)", wide: true }, { title: "Ended", size: "6rem", wide: true },
  { title: "Next try", size: "6rem", wide: true }, { title: "Order", size: "minmax(9rem, 1.2fr)" }];

function cells(object) {
  const key = object.key;
  const name = key.namespace ? `${key.namespace}/${key.name}` : key.name;
  const why = object.lastError || object.reason;
  return [h("span", { class: "cut", title: `${name} ${key.controller}` }, name, h("small", null, ` ${key.controller}`)), h("a", { href: link("member", key.cluster), class: "cut" }, key.cluster),
    outcome(object) || word(object.state, "RECONCILE_STATE_"), object.attempts, ago(object.failingSince), h("span", { class: "cut", title: why }, why || "–"),
    ago(object.lastFinishedAt), ago(object.nextTryAt), requeueButton(() => objectPath(key), `${name} of ${key.cluster}`)];
}

export function failingView() {
  let text = "";
  let chosen = "failing";
  let live = null;
  const above = h("div");
  const count = h("span", { class: "muted", role: "status" });
  const list = new List({ label: "Keys", columns, cells, nameOf: nameOfObject, empty: "" });
  const all = requeueAll(() => filters[chosen][1]);
  const element = h("div", null, h("h1", { tabindex: "-1" }, "Failing keys"),
    h("div", { class: "tools" }, search("Find a key", (value) => { text = value; draw(); }),
      choice("Show", Object.entries(filters).map(([key, [title]]) => [key, title]), chosen, (value) => { chosen = value; follow(); }), all.button, count),
    all.dialog, above, list.element);

  const draw = throttled(150, () => {
    const shown = [...live.items.values()].filter((o) => !text || nameOfObject(o).includes(text) || o.lastError.toLowerCase().includes(text))
      .sort((a, b) => b.attempts - a.attempts || compare(nameOfObject(a), nameOfObject(b)));
    count.textContent = `${shown.length.toLocaleString("en")} of ${counted(live.items.size, "key")}`;
    fill(above, trouble(live));
    list.show(shown, live.synced ? `No key is ${filters[chosen][0]}.` : live.refused ? "" : "Loading…");
  });

  function follow() {
    live?.stop();
    live = new Live({ path: "v1/objects:watch", query: { filter: filters[chosen][1] }, field: "object", nameOf: nameOfObject, changed: () => draw() }).start();
    draw();
  }

  follow();
  return { element, title: "Failing keys", close() { live.stop(); list.close(); draw.stop(); } };
}

// requeueAll orders everything that passes the filter, after it has said how much that is.
function requeueAll(filter) {
  const body = h("div", { "aria-live": "polite" });
  const dialog = h("dialog", { "aria-label": "Requeue all" }, h("h2", null, "Requeue all"), body);
  const close = () => h("button", { type: "button", on: { click: () => dialog.close() } }, "Close");
  const order = async (dry) => {
    const asked = filter();
    try {
      const answer = await call("POST", "v1/objects:requeue", { body: { filter: asked, validate_only: dry, request_id: dry ? "" : crypto.randomUUID() } });
      const missing = answer.unreachable.length > 0 && notice("warn", `${counted(answer.unreachable.length, "member")} could not be asked.`);
      if (dry) {
        fill(body, h("p", null, `${counted(answer.matched, "key")} would be requeued, at 50 a second in each member.`), missing, h("p", { class: "tools" },
          h("button", { type: "button", disabled: answer.matched === 0, on: { click: () => order(false) } }, `Requeue ${counted(answer.matched, "key")}`), close()));
      } else {
        fill(body, h("p", null, `${counted(answer.matched, "key")} ordered. The list shows what comes of it.`), missing, close());
      }
    } catch (failure) {
      fill(body, notice("bad", sentence(failure)), close());
    }
  };
  const button = h("button", { type: "button", on: { click: () => { fill(body, h("p", null, "Counting…"), close()); dialog.showModal(); order(true); } } }, "Requeue all…");
  return { button, dialog };
}
