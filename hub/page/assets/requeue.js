// Ordering a reconcile, and following the order to its end.
import { call, path, sentence } from "./api.js";
import { h } from "./dom.js";
import { tones, word } from "./words.js";

const final = new Set(["OPERATION_STATE_DONE", "OPERATION_STATE_FAILED", "OPERATION_STATE_SUPERSEDED", "OPERATION_STATE_CANCELLED"]);

// orders by path, so that a row that is drawn again shows what was ordered in it.
const orders = new Map();

// requeueButton orders a reconcile of what where() names, and says beside it how that goes.
export function requeueButton(where, name) {
  const status = h("span", { role: "status", class: "small order" });
  const button = h("button", { type: "button", "aria-label": `Requeue ${name}`, on: { click: async () => {
    const order = {};
    order.say = (text, tone) => { Object.assign(order, { text, tone }); order.show(text, tone); };
    orders.set(where(), order);
    attach(order);
    await follow(where(), order);
  } } }, "Requeue");
  function attach(order) {
    order.show = (text, tone) => { status.textContent = text; status.title = text; status.className = `small order cut ${tone}`; };
    if (order.text) order.say(order.text, order.tone);
  }
  const before = orders.get(where());
  if (before) attach(before);
  return h("span", { class: "requeue" }, button, " ", status);
}

async function follow(where, order) {
  order.say("ordered…", "calm");
  try {
    let { operation } = await call("POST", `${where}:requeue`, { body: {} });
    for (let tries = 0; !final.has(operation.state) && tries < 10; tries++) {
      order.say(`${word(operation.state, "OPERATION_STATE_")} ${operation.message}`.trim(), "calm");
      operation = (await call("GET", path("operations", operation.id), { query: { wait: "20s" } })).operation;
    }
    order.say(`${word(operation.state, "OPERATION_STATE_")} ${operation.message}`.trim(), tones[operation.state] ?? "calm");
  } catch (failure) {
    order.say(sentence(failure), "bad");
  }
}
