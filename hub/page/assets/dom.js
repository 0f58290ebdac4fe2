// Elements are made here and nowhere else. What the API says becomes text nodes and attribute values, never markup.

// h makes an element. props are attributes, except class, on (listeners by event) and style (CSS properties); null and false leave
// an attribute out. Children are nodes, text, or lists of them; null and false are left out.
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    set(element, name, value);
  }
  element.append(...nodes(children));
  return element;
}

function set(element, name, value) {
  switch (name) {
    case "on":
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
      return;
    case "style":
      // Through the object model, which the policy allows; a style attribute would be refused.
      for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
      return;
    case "href":
      // Only ways within the page: what a member says is never an address.
      if (!String(value).startsWith("#")) throw new Error("a link must lead into the page");
  }
  if (value === null || value === undefined || value === false) return;
  element.setAttribute(name, value === true ? "" : String(value));
}

function nodes(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}

// fill replaces the children of an element. What has the focus keeps it, if it has an id and comes again.
export function fill(element, ...children) {
  const active = element.contains(document.activeElement) ? document.activeElement.id : "";
  element.replaceChildren(...nodes(children));
  if (active) document.getElementById(active)?.focus();
}

// link is the address of a view: its parts are encoded.
export function link(...parts) {
  return "#/" + parts.map(encodeURIComponent).join("/");
}

// throttled calls do at most once in ms, and once more behind the last call. stop ends it.
export function throttled(ms, work) {
  let timer = 0;
  let last = -Infinity;
  const run = () => {
    timer = 0;
    last = performance.now();
    work();
  };
  const call = () => {
    if (timer === 0) timer = setTimeout(run, Math.max(0, last + ms - performance.now()));
  };
  call.stop = () => clearTimeout(timer);
  return call;
}
