// What the API says in enumerations, times and numbers, in words.
import { h } from "./dom.js";

// word drops the prefix of an enumeration's value: CLUSTER_STATE_READY is "Ready", with prefix "CLUSTER_STATE_".
export function word(value, prefix) {
  const text = String(value ?? "").replace(prefix, "").toLowerCase().replaceAll("_", " ");
  return text === "unspecified" ? "" : text.charAt(0).toUpperCase() + text.slice(1);
}

export const clusterState = (cluster) => word(cluster.state, "CLUSTER_STATE_");
export const workloadState = (workload) => word(workload.state, "WORKLOAD_STATE_");
export const waitKind = (wait) => ({ DRY: "No capacity" })[bare(wait.kind, "WAIT_KIND_")] ?? word(wait.kind, "WAIT_KIND_");
export const placementState = (p) => word(p.state, "FLEET_PLACEMENT_STATE_");
export const fleetMemberState = (m) => word(m.state, "FLEET_MEMBER_STATE_");
export const eventType = (e) => ({ INSUFFICIENT_CAPACITY_BEGAN: "No capacity", INSUFFICIENT_CAPACITY_ENDED: "Capacity again", CLUSTER_STATE: "Member state" })[bare(e.type, "EVENT_TYPE_")] ?? word(e.type, "EVENT_TYPE_");
export const outcome = (object) => word(object.lastOutcome, "RECONCILE_OUTCOME_");
export const source = (value) => word(value, "VALUE_SOURCE_").toLowerCase();
export const capacity = (value) => ({ CAPACITY_TYPE_SPOT: "spot", CAPACITY_TYPE_ON_DEMAND: "on-demand", spot: "spot", "on-demand": "on-demand" })[value] ?? "unknown";

// bare is the name of an enumeration's value, as filters have it.
export const bare = (value, prefix) => String(value ?? "").replace(prefix, "");

// counted is a number with its noun.
export const counted = (n, noun, many = noun + "s") => `${n.toLocaleString("en")} ${n === 1 ? noun : many}`;

// tones say how a state looks; the word is always there as well.
export const tones = {
  CLUSTER_STATE_READY: "good", CLUSTER_STATE_CONNECTING: "calm", CLUSTER_STATE_DEGRADED: "warn",
  CLUSTER_STATE_UNREACHABLE: "bad", CLUSTER_STATE_REFUSED: "bad",
  WORKLOAD_STATE_CONVERGED: "good", WORKLOAD_STATE_MOVING: "calm", WORKLOAD_STATE_WAITING: "warn",
  WORKLOAD_STATE_READ_ONLY: "warn", WORKLOAD_STATE_INVALID: "bad", WORKLOAD_STATE_UNMANAGED: "calm",
  FLEET_PLACEMENT_STATE_PLACED: "good", FLEET_PLACEMENT_STATE_WAITING: "warn", FLEET_PLACEMENT_STATE_INCOMPLETE: "bad", FLEET_PLACEMENT_STATE_STOPPED: "bad",
  FLEET_PLACEMENT_STATE_PAUSED: "warn", FLEET_MEMBER_STATE_PLACED: "good", FLEET_MEMBER_STATE_UNREACHABLE: "bad", FLEET_MEMBER_STATE_LOST: "bad", FLEET_MEMBER_STATE_OUT: "warn",
  EVENT_TYPE_INSUFFICIENT_CAPACITY_BEGAN: "warn", EVENT_TYPE_INSUFFICIENT_CAPACITY_ENDED: "good", EVENT_TYPE_INTERRUPTION: "warn",
  OPERATION_STATE_DONE: "good", OPERATION_STATE_FAILED: "bad", OPERATION_STATE_SUPERSEDED: "warn", OPERATION_STATE_CANCELLED: "warn",
};

// distance is the time between now and a moment, in one unit.
export function distance(moment, now = Date.now()) {
  const seconds = Math.round((Date.parse(moment) - now) / 1000);
  const size = Math.abs(seconds);
  const text = size < 100 ? `${size} s` : size < 6000 ? `${Math.round(size / 60)} min`
    : size < 172800 ? `${Math.round(size / 3600)} h` : `${Math.round(size / 86400)} days`;
  return seconds > 0 ? `in ${text}` : `${text} ago`;
}

// ago shows a moment as its distance, which app.js keeps current; nothing where there is none.
export function ago(moment) {
  if (!moment) return h("span", { class: "muted" }, "–");
  return h("time", { datetime: moment, title: new Date(moment).toLocaleString() }, distance(moment));
}

// tick brings all distances up to date.
export function tick() {
  for (const element of document.querySelectorAll("time")) {
    const text = distance(element.getAttribute("datetime"));
    if (element.textContent !== text) element.textContent = text;
  }
}

// seconds is a duration of the API, such as "60s".
export const seconds = (duration) => (duration ? `${Number.parseFloat(duration)} s` : "");
