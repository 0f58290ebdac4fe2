// A table of any length: only the rows that can be seen are elements.
import { h } from "./dom.js";

const spare = 8; // rows above and below what is seen
const guess = 44; // px, before a row was measured

// List shows items in rows of one height. columns are {title, wide}: wide ones are left out on narrow screens. cells makes the cells of
// an item, nameOf its key.
export class List {
  constructor({ label, columns, cells, nameOf, empty }) {
    Object.assign(this, { columns, cells, nameOf, empty });
    this.items = [];
    this.rows = new Map(); // by name: {element, item}
    this.height = guess;
    this.space = h("div", { class: "space", role: "rowgroup" });
    this.scroll = h("div", { class: "scroll", role: "presentation", on: { scroll: () => this.draw() } }, this.space);
    this.none = h("p", { class: "muted none", hidden: true });
    this.table = h("div", { class: "table", role: "table", "aria-label": label, on: { keydown: (event) => this.key(event) } },
      h("div", { role: "rowgroup" },
        h("div", { class: "row head", role: "row" }, columns.map((c) => h("span", { role: "columnheader", class: classOf(c) }, c.title)))),
      this.scroll);
    this.table.style.setProperty("--columns", columns.map((c) => c.size ?? "1fr").join(" "));
    this.table.style.setProperty("--narrow", columns.filter((c) => !c.wide).map((c) => c.size ?? "1fr").join(" "));
    this.element = h("div", { class: "list" }, this.table, this.none);
    this.resized = new ResizeObserver(() => this.measure());
    this.resized.observe(this.scroll);
  }

  close() {
    this.resized.disconnect();
  }

  show(items, empty = this.empty) {
    this.items = items;
    this.table.setAttribute("aria-rowcount", items.length + 1);
    this.none.textContent = empty;
    this.none.hidden = items.length > 0;
    this.table.hidden = items.length === 0;
    this.draw();
  }

  measure() {
    const first = this.rows.values().next().value;
    const height = first?.element.getBoundingClientRect().height;
    if (height && height !== this.height) this.height = height;
    this.draw();
  }

  draw() {
    this.space.style.setProperty("height", `${this.items.length * this.height}px`);
    const top = Math.max(0, Math.floor(this.scroll.scrollTop / this.height) - spare);
    const end = Math.min(this.items.length, Math.ceil((this.scroll.scrollTop + (this.scroll.clientHeight || 800)) / this.height) + spare);
    const kept = new Map();
    for (let i = top; i < end; i++) {
      const item = this.items[i];
      const name = this.nameOf(item);
      const row = this.rows.get(name) ?? { element: h("div", { class: "row", role: "row" }) };
      this.update(row, item, i);
      kept.set(name, row);
    }
    for (const [name, row] of this.rows) {
      if (!kept.has(name)) row.element.remove();
    }
    const unmeasured = this.rows.size === 0 && kept.size > 0;
    this.rows = kept;
    this.order();
    if (unmeasured) requestAnimationFrame(() => this.measure());
  }

  update(row, item, index) {
    if (row.item !== item) {
      const within = row.element.contains(document.activeElement) ? focusable(row.element).indexOf(document.activeElement) : -1;
      row.element.replaceChildren(...this.cells(item).map((content, i) =>
        h("span", { role: "cell", class: classOf(this.columns[i]), "data-title": this.columns[i].title }, content)));
      if (within >= 0) focusable(row.element)[within]?.focus();
      row.item = item;
    }
    row.index = index;
    row.element.setAttribute("aria-rowindex", index + 2);
    row.element.style.setProperty("transform", `translateY(${index * this.height}px)`);
  }

  // order puts the elements in the order of the rows, for Tab, and moves none that is where it belongs.
  order() {
    let before = null;
    for (const { element } of this.rows.values()) {
      const next = before ? before.nextSibling : this.space.firstChild;
      if (next !== element) this.space.insertBefore(element, next);
      before = element;
    }
  }

  // key moves the focus from row to row.
  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || event.target.matches("input, select, textarea")) return;
    const from = [...this.rows.values()].find((row) => row.element.contains(document.activeElement));
    if (!from) return;
    event.preventDefault();
    const within = focusable(from.element).indexOf(document.activeElement);
    const to = Math.min(this.items.length - 1, Math.max(0, from.index + step));
    const above = to * this.height;
    if (above < this.scroll.scrollTop) this.scroll.scrollTop = above;
    const below = above + this.height - this.scroll.clientHeight;
    if (below > this.scroll.scrollTop) this.scroll.scrollTop = below;
    this.draw();
    const row = this.rows.get(this.nameOf(this.items[to]));
    const targets = row ? focusable(row.element) : [];
    (targets[within] ?? targets[0])?.focus({ preventScroll: true });
  }
}

const focusable = (element) => [...element.querySelectorAll("a, button")];
const classOf = (column) => [column.wide && "wide", column.number && "number"].filter(Boolean).join(" ") || null;
