// Starts the page: signs in, routes, and keeps the members current for all views.
import { exchange, session } from "./api.js";
import { fill, h, link } from "./dom.js";
import { eventsView } from "./events.js";
import { failingView } from "./failing.js";
import { fleetView } from "./fleet.js";
import { Live, onConnectionChange } from "./live.js";
import { memberView } from "./member.js";
import { placementsView, placementView } from "./placements.js";
import { signInView } from "./signin.js";
import { tick } from "./words.js";
import { workloadView } from "./workload.js";
import { workloadsView } from "./workloads.js";

const main = document.getElementById("main");
const banner = document.getElementById("connection");
let clusters = null; // the watch of the members; null: nobody is signed in
let view = null;

// routes by the first part of the address behind #/.
const routes = {
  "": () => fleetView(clusters),
  member: (name) => memberView(clusters, name),
  workloads: () => workloadsView(),
  workload: (cluster, namespace, kind, name) => workloadView({ cluster, namespace, kind, name }),
  placements: () => placementsView(),
  placement: (namespace, name) => placementView(namespace, name),
  failing: () => failingView(),
  events: () => eventsView(),
};

const pages = [["", "Fleet"], ["workloads", "Workloads"], ["placements", "Placements"], ["failing", "Failing keys"], ["events", "Events"]];

// where is the address as parts; one that cannot be decoded leads to the fleet.
function where() {
  try {
    return location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return [""];
  }
}

function show(next) {
  view?.close();
  view = next;
  document.title = `${view.title} · Plimsoll`;
  fill(main, view.element);
}

function route() {
  if (!clusters) return;
  const [page, ...rest] = where();
  const make = Object.hasOwn(routes, page) && rest.length === routes[page].length ? routes[page] : routes[""];
  show(make(...rest));
  header(page);
}

function header(page) {
  fill(document.getElementById("top"), h("a", { class: "brand", href: "#/" }, "Plimsoll"),
    clusters && h("nav", { "aria-label": "Pages" }, pages.map(([name, text]) => h("a", { href: link(name), "aria-current": name === page ? "page" : null }, text))),
    clusters && session.token && h("button", { type: "button", class: "quiet", on: { click: () => session.signOut("You have signed out.") } }, "Sign out"));
}

function signedIn(token) {
  session.signIn(token);
  watch();
  route();
  main.focus();
}

// watch follows the members, and shows a view when there is something to show.
function watch() {
  clusters = new Live({ path: "v1/clusters:watch", field: "cluster", nameOf: (c) => c.name, changed: () => {
    if (!view) route();
    else view.changed?.();
  } }).start();
}

function signedOut(message) {
  if (view && !clusters) return; // a call that was under way has ended: somebody may be typing a token by now
  clusters?.stop();
  clusters = null;
  // Who has not seen anything yet only has to be asked.
  show(signInView(view ? message : "", signedIn));
  view.focus();
  header("");
}

// begin signs in with what there is: the secret of `plimsoll dashboard`, the token of this tab, or nothing where the API asks for none,
// which its first answer shows.
async function begin() {
  const [, secret] = location.hash.match(/^#once=([\w-]+)$/) ?? [];
  if (secret) {
    // It must neither stay in the address bar nor in the history.
    history.replaceState(null, "", location.pathname);
    try {
      session.signIn(await exchange(secret));
    } catch {
      show(signInView("This link has been used, or is too old. Run plimsoll dashboard again.", signedIn));
      view.focus();
      header("");
      return;
    }
  }
  if (session.token) signedIn(session.token);
  else watch();
}

session.listen(signedOut);
onConnectionChange((failure) => {
  banner.hidden = failure === null;
  banner.textContent = failure === null ? "" : `Not current: ${failure.message} Trying again.`;
});
addEventListener("hashchange", () => {
  route();
  main.querySelector("h1")?.focus();
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  const field = main.querySelector("input[type=search]");
  if (field) {
    event.preventDefault();
    field.focus();
  }
});
// Not by its address, which would change the route.
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
setInterval(tick, 5_000);
begin();
