import { base } from "./base";
import type { Problem } from "./types";

// A Refusal is what the server says instead of an answer: a problem document,
// or what is known where the server could not be reached at all.
export class Refusal extends Error {
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }
  get code() {
    return this.problem.code;
  }
}

const unreachable: Problem = {
  title: "Unreachable", status: 0, code: "unreachable", detail: "Ken is not responding. Is ken serve still running?",
};

type Query = Record<string, string | number | boolean | string[] | undefined>;

export function address(path: string, query?: Query): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [String(value)]) search.append(name, one);
  }
  const text = search.toString();
  return (base ? "/api/demo/v1" : "/api/v1") + path + (text ? "?" + text : "");
}

// id makes a capability's id, or another, fit for a path: a slash in it stays.
export function inPath(id: string): string {
  return id.split("/").map(encodeURIComponent).join("/");
}

// signedOut is the event of the window that somebody must sign in again.
export const signedOut = "ken-signed-out";
// signInAgain is the event of the window that the person must sign in once more for
// what they are about to do.
export const signInAgain = "ken-sign-in-again";
let out = false; // until then nothing is asked again and again

// enter says that somebody has signed in again, here or in another tab.
export function enter() {
  out = false;
}

// signIn signs in with a token, or a link that has one.
export async function signIn(said: string) {
  const token = /[?&]token=([^&#\s]+)/.exec(said)?.[1] ?? said.trim();
  let answer: Response;
  try {
    answer = await fetch("/auth/signin", { method: "POST", credentials: "same-origin", body: new URLSearchParams({ token }) });
  } catch {
    throw new Refusal(unreachable);
  }
  if (answer.ok) { enter(); return; }
  const detail = answer.status === 429 ? "Too many attempts. Wait a few seconds and try again." : "Invalid token for this server. A link works only until ken serve restarts.";
  throw new Refusal({ ...unreachable, title: "Not signed in", status: answer.status, code: "not-signed-in", detail });
}

async function ask<T>(method: string, path: string, query?: Query, body?: unknown, signal?: AbortSignal): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(address(path, query), {
      method, signal, credentials: "same-origin",
      headers: body === undefined ? { Accept: "application/json" } : { Accept: "application/json", "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new Refusal(unreachable);
  }
  if (!answer.ok) {
    const problem = (await answer.json().catch(() => null)) as Problem | null;
    if (answer.status === 401 || problem?.code === "too-many-attempts") { // so only those are refused whom nobody knows
      out = true;
      dispatchEvent(new Event(signedOut));
    }
    throw new Refusal(problem ?? { ...unreachable, status: answer.status, code: "status-" + answer.status, detail: "Ken answered with status " + answer.status });
  }
  if (answer.status === 204 || answer.status === 304) return undefined as T;
  return (await answer.json()) as T;
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal) => ask<T>("GET", path, query, undefined, signal);
export const post = <T>(path: string, body: unknown = {}, query?: Query) => ask<T>("POST", path, query, body);
export const order = <T>(path: string) => ask<T>("POST", path); // without a body
export const put = <T>(path: string, body: unknown) => ask<T>("PUT", path, undefined, body);
export const remove = <T>(path: string) => ask<T>("DELETE", path);

// A Following is a stream of events that is listened to. A browser gives events
// with a name only to who asks for that name, so all of them are listed.
export interface Following<T> {
  path: string;
  after?: string; // the id of the event that is known already
  names?: string[];
  each: (event: T, id: string) => void;
  state: (open: boolean) => void;
}

const patience = 5000; // ms without the stream until it is opened again
export const hiddenFor = 2000; // ms in the background until it is closed

// follow listens until the function that it returns is called. The browser
// connects again by itself and names the last event that it has; where the answer
// is an error it gives up for good, and then the stream begins again from there. A
// server that stops says so with the event "leaving", and when to come again.
//
// A browser has six connections to a server, for all of its tabs. So a tab in the
// background lets its streams go, and takes them up where they were when somebody
// looks at it again.
export function follow<T>(f: Following<T>): () => void {
  let source: EventSource | undefined, waiting: ReturnType<typeof setTimeout> | undefined, hiding: ReturnType<typeof setTimeout> | undefined;
  let after = f.after, soon = 0; // ms until it is opened again, if the server said that it leaves
  const take = (m: MessageEvent<string>) => {
    if (m.lastEventId) after = m.lastEventId;
    f.each(JSON.parse(m.data) as T, m.lastEventId);
  };
  const end = () => { clearTimeout(waiting); source?.close(); source = undefined; };
  const begin = () => {
    end();
    if (out) { waiting = setTimeout(begin, 500); return; }
    const fresh = (source = new EventSource(address(f.path, { after })));
    fresh.onmessage = take;
    for (const name of f.names ?? []) fresh.addEventListener(name, take);
    fresh.addEventListener("leaving", (m: MessageEvent<string>) => { soon = (JSON.parse(m.data) as { retry: number }).retry; });
    fresh.onopen = () => { clearTimeout(waiting); f.state(true); };
    fresh.onerror = () => {
      // An error that stands may mean that one is signed out, which asking tells.
      if (fresh.readyState === EventSource.CLOSED) get("/me").catch(() => {});
      clearTimeout(waiting);
      waiting = setTimeout(begin, soon || patience);
      if (!soon) f.state(false); // another server answers, most likely
      soon = 0;
    };
  };
  const look = () => {
    clearTimeout(hiding); // it was a glance elsewhere
    if (document.hidden) hiding = setTimeout(end, hiddenFor);
    else if (source?.readyState !== EventSource.OPEN) begin();
  };
  document.addEventListener("visibilitychange", look);
  if (!document.hidden) begin();
  return () => { document.removeEventListener("visibilitychange", look); clearTimeout(hiding); end(); };
}
