// Calls of the REST API, with the token of this tab.

const stored = "plimsoll.token";
// The page is one folder below the API, whatever prefix a proxy may put before both.
const root = new URL("../", document.baseURI);

export const UNAUTHENTICATED = 16;
export const PERMISSION_DENIED = 7;
export const INVALID_ARGUMENT = 3;
export const FAILED_PRECONDITION = 9;
const UNAVAILABLE = 14;

// Failure is what a call was answered with: code is that of gRPC.
export class Failure extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

let onSignedOut = () => {};

// session is who is signed in. The token lives as long as the tab.
export const session = {
  get token() {
    return sessionStorage.getItem(stored) ?? "";
  },
  signIn(token) {
    if (token) sessionStorage.setItem(stored, token);
    else sessionStorage.removeItem(stored);
  },
  // signOut forgets the token, and says why to whoever listens.
  signOut(message) {
    sessionStorage.removeItem(stored);
    onSignedOut(message);
  },
  listen(listener) {
    onSignedOut = listener;
  },
};

// path encodes the segments of a path below /v1. Names come from the address bar: one that is no segment would lead elsewhere.
export function path(...segments) {
  if (segments.some((s) => s === "" || s === "." || s === ".." || s.includes("/"))) throw new Error(`no such name: ${segments.join(" ")}`);
  return "v1/" + segments.map(encodeURIComponent).join("/");
}

// objectPath is where a key of the ledger is; objects of kinds without namespaces have a shorter one.
export function objectPath(key) {
  const place = key.namespace ? [key.namespace, key.name] : [key.name];
  return path("clusters", key.cluster, "controllers", key.controller, "objects", ...place);
}

export function workloadPath(w) {
  return path("clusters", w.cluster, "namespaces", w.namespace, "workloads", w.kind, w.name);
}

// open sends a request and returns the response, or throws a Failure.
export async function open(method, where, { query = {}, body, signal, token = session.token } = {}) {
  const url = new URL(where, root);
  for (const [name, value] of Object.entries(query)) {
    if (value !== "" && value !== undefined) url.searchParams.set(name, value);
  }
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url, {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
    });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new Failure(UNAVAILABLE, "The hub does not answer.");
  }
  if (response.ok) return response;
  throw await failureOf(response);
}

async function failureOf(response) {
  let answer = {};
  try {
    answer = await response.json();
  } catch {
    // Not an answer of the API; its status says what there is to say.
  }
  const code = answer.code ?? { 401: UNAUTHENTICATED, 403: PERMISSION_DENIED }[response.status] ?? UNAVAILABLE;
  return new Failure(code, answer.message || `The hub answered with status ${response.status}.`);
}

// call makes a call and returns its answer. A token that is no longer accepted signs out.
export async function call(method, where, options = {}) {
  try {
    return await (await open(method, where, options)).json();
  } catch (failure) {
    if (failure.code === UNAUTHENTICATED && options.token === undefined) expired(failure);
    throw failure;
  }
}

// expired signs out because the API did not accept the token.
export function expired(failure) {
  session.signOut(session.token ? `Your session has ended. The hub says: ${failure.message}` : failure.message);
}

// sentence is a failure for people.
export function sentence(failure) {
  return failure.code === PERMISSION_DENIED ? `You may not do or see this. The hub says: ${failure.message}` : failure.message;
}

// exchange turns the one-time secret of `plimsoll dashboard` into a token for its proxy.
export async function exchange(secret) {
  const answer = await (await open("POST", "dashboard/session", { body: { secret }, token: "" })).json();
  return answer.token;
}
