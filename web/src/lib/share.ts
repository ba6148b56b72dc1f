// A browser has six connections to a server, for all of its tabs. What every tab
// listens to alike is therefore listened to by one of them, which passes it on:
// the one that has the lock. When that tab is closed or hidden, another gets it
// and goes on after the last event that it heard of.
import { follow, hiddenFor, type Following } from "./api";

type Passed<T> = { event: T; id: string } | { open: boolean } | { hello: true } | { known: T[]; open: boolean };

// share follows a stream as [follow] does, with all tabs that share it by the
// same name. What a new tab has missed are the last events of the given kinds.
export function share<T extends { type: string }>(name: string, f: Following<T>, kinds: string[]): () => void {
  if (!("locks" in navigator) || !("BroadcastChannel" in globalThis)) return follow(f); // not a secure place: each for itself
  const channel = new BroadcastChannel(name);
  const known = new Map<string, T>();
  let after = f.after, open = true;
  let leave: (() => void) | undefined; // gives the lock back, or up
  let leading = false;
  let leaving: ReturnType<typeof setTimeout> | undefined;

  const take = (event: T, id: string) => {
    if (id) after = id;
    if (kinds.includes(event.type)) known.set(event.type, event);
    f.each(event, id);
  };
  const state = (now: boolean) => { open = now; f.state(now); };
  const pass = (p: Passed<T>) => channel.postMessage(p);

  channel.onmessage = ({ data }: MessageEvent<Passed<T>>) => {
    if ("hello" in data) { if (leading) pass({ known: [...known.values()], open }); }
    else if ("known" in data) { for (const e of data.known) take(e, ""); state(data.open); }
    else if ("event" in data) take(data.event, data.id);
    else state(data.open);
  };

  // join waits for the lock, and listens for all while it has it.
  function join() {
    clearTimeout(leaving);
    if (leave) return;
    const gone = new AbortController();
    leave = () => { leave = undefined; gone.abort(); };
    navigator.locks.request(name, { signal: gone.signal }, () => new Promise<void>((done) => {
      leading = true;
      const stop = follow<T>({
        ...f, after,
        each: (event, id) => { take(event, id); pass({ event, id }); },
        state: (now) => { state(now); pass({ open: now }); },
      });
      leave = () => { leave = undefined; leading = false; stop(); done(); };
    })).catch(() => {}); // it was given up before it came
    pass({ hello: true });
  }
  const look = () => {
    clearTimeout(leaving);
    if (!document.hidden) join();
    else leaving = setTimeout(() => leave?.(), hiddenFor);
  };
  document.addEventListener("visibilitychange", look);
  if (!document.hidden) join();
  return () => {
    document.removeEventListener("visibilitychange", look);
    clearTimeout(leaving);
    leave?.();
    channel.close();
  };
}
