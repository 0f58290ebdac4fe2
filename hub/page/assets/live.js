// What a watch sends, kept current.
import { expired, FAILED_PRECONDITION, Failure, INVALID_ARGUMENT, open, PERMISSION_DENIED, UNAUTHENTICATED } from "./api.js";

const silence = 45_000; // ms; a bookmark comes every 15 s
const firstWait = 500;
const longestWait = 15_000;
const most = 20_000; // resources; a tab has to stay usable

const running = new Set();
let onConnection = () => {};

// onConnectionChange calls listener with the failure of any watch that is cut off, or with null.
export function onConnectionChange(listener) {
  onConnection = listener;
}

function report() {
  onConnection([...running].find((live) => live.down)?.down ?? null);
}

// A hidden tab watches nothing: browsers allow few connections to one host, and a hub's work is for those who look.
document.addEventListener("visibilitychange", () => {
  for (const live of running) live.visibility();
});

// Live follows one watch. items are the resources by name; changed() is called after each batch of messages.
export class Live {
  constructor({ path, query = {}, field, nameOf, changed }) {
    Object.assign(this, { path, query, field, nameOf, changed });
    this.items = new Map();
    this.unreachable = [];
    this.synced = false; // everything that was there at the start is in items
    this.full = false; // there is more than a tab should hold
    this.refused = null; // why there is nothing and will be nothing
    this.down = null; // why items may be old
    this.resume = "";
  }

  start() {
    running.add(this);
    this.run();
    return this;
  }

  stop() {
    this.stopped = true;
    running.delete(this);
    this.request?.abort();
    this.wake?.();
    report();
  }

  visibility() {
    if (document.hidden) this.request?.abort();
    else this.wake?.();
  }

  async run() {
    for (let wait = firstWait; !this.stopped; wait = Math.min(2 * wait, longestWait)) {
      if (document.hidden) await this.pause(longestWait);
      if (this.stopped || document.hidden) continue;
      try {
        if (await this.read()) wait = firstWait;
      } catch (failure) {
        if (this.stopped || document.hidden) continue;
        if (this.ends(failure)) return;
        this.down = failure instanceof Failure ? failure : new Failure(14, "The connection to the hub is lost.");
      }
      if (this.stopped) return;
      if (this.full) return;
      report();
      this.changed();
      await this.pause(wait * (0.5 + Math.random() / 2));
    }
  }

  // ends reports whether a failure will not pass by itself.
  ends(failure) {
    switch (failure instanceof Failure ? failure.code : null) {
      case UNAUTHENTICATED:
        expired(failure);
        return true;
      case PERMISSION_DENIED:
      case INVALID_ARGUMENT:
      case FAILED_PRECONDITION:
        this.refused = failure;
        this.items.clear();
        running.delete(this);
        this.changed();
        return true;
    }
    return false;
  }

  pause(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  // read follows one connection to its end. It returns whether anything came.
  async read() {
    this.request = new AbortController();
    this.seen = this.resume ? null : new Set();
    let alive = setTimeout(() => this.request.abort(), silence);
    let came = false;
    try {
      const response = await open("GET", this.path, { query: { ...this.query, resume_token: this.resume }, signal: this.request.signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) return came;
        clearTimeout(alive);
        alive = setTimeout(() => this.request.abort(), silence);
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) {
          if (line) this.take(JSON.parse(line));
        }
        came = true;
        if (this.down) {
          this.down = null;
          report();
        }
        this.changed();
        if (this.full) {
          this.request.abort();
          return came;
        }
      }
    } finally {
      clearTimeout(alive);
    }
  }

  take(message) {
    if (message.error) throw new Failure(message.error.code, message.error.message);
    const result = message.result;
    if (result.resumeToken) this.resume = result.resumeToken;
    switch (result.type) {
      case "WATCH_EVENT_TYPE_PUT":
        this.put(result[this.field]);
        break;
      case "WATCH_EVENT_TYPE_REMOVED":
        this.items.delete(this.nameOf(result[this.field]));
        break;
      case "WATCH_EVENT_TYPE_RESYNC":
        this.seen = new Set();
        break;
      case "WATCH_EVENT_TYPE_SYNCED":
        this.sync();
      // fallthrough
      case "WATCH_EVENT_TYPE_BOOKMARK":
        this.unreachable = result.unreachable ?? [];
    }
  }

  put(resource) {
    const name = this.nameOf(resource);
    if (!this.items.has(name) && this.items.size >= most) {
      this.full = true;
      return;
    }
    this.items.set(name, resource);
    this.seen?.add(name);
  }

  // sync drops what was there before and was not sent again.
  sync() {
    this.synced = true;
    if (!this.seen) return;
    for (const name of this.items.keys()) {
      if (!this.seen.has(name)) this.items.delete(name);
    }
    this.seen = null;
  }
}

export const nameOfWorkload = (w) => `${w.cluster}/${w.namespace}/${w.kind}/${w.name}`;
export const nameOfObject = (o) => `${o.key.cluster}/${o.key.controller}/${o.key.namespace}/${o.key.name}`;

// Poll asks again and again while the tab is visible; for what there is no watch of. take gets each answer, failed each failure.
export class Poll {
  constructor(every, ask, take, failed) {
    Object.assign(this, { every, ask, take, failed });
    this.request = new AbortController();
  }

  start() {
    this.run();
    return this;
  }

  stop() {
    this.request.abort();
    clearTimeout(this.timer);
  }

  async run() {
    if (!document.hidden) {
      try {
        this.take(await this.ask(this.request.signal));
      } catch (failure) {
        if (!this.request.signal.aborted) this.failed(failure);
        if (failure.code === UNAUTHENTICATED || failure.code === PERMISSION_DENIED) return;
      }
    }
    if (!this.request.signal.aborted) this.timer = setTimeout(() => this.run(), this.every);
  }
}
