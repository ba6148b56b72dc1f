import { get, Refusal } from "./api";
import { latest } from "./latest";
import { share } from "./share";
import { told } from "./words";
import type { FeedEvent, Me, Stats, TrailRecord } from "./types";

// What every view may know: who is here, what waits, and that news came.
class App {
  me = $state<Me | null>(null);
  // What lists and the graph have: the catalog's, and Ken's own, which lack nothing.
  catalog = $derived(this.me && listed(this.me));
  trouble = $state("");
  pending = $state(0); // approvals that wait
  catalogVersion = $state(0);
  online = $state(true);
  lapses = $state(0); // how often news or answers may have been lost: what is shown is read again
  toasts = $state<{ id: number; text: string; bad: boolean }[]>([]);
  #toast = 0;
  #listeners = new Set<(r: TrailRecord) => void>();
  #workers = new Set<(id: string) => void>();
  #newest = latest();

  async begin() {
    try {
      this.me = await get<Me>("/me");
      this.catalogVersion = this.me.catalog.indexVersion;
    } catch (e) {
      this.trouble = words(e);
      return;
    }
    share<FeedEvent>(`ken-feed ${this.me.tenant ?? ""} ${this.me.id}`, { path: "/feed", each: (e) => this.#hear(e), state: (open) => this.#feed(open) }, ["catalog", "approvals"]);
  }

  #hear(e: FeedEvent) {
    switch (e.type) {
      case "approvals": this.pending = e.pending; break;
      case "reset": this.lapses++; break;
      case "jobs": for (const f of this.#workers) f(e.id); break;
      case "trail": for (const f of this.#listeners) f(e.record); break;
      case "catalog":
        if (this.catalogVersion && e.version !== this.catalogVersion) void this.refresh();
        this.catalogVersion = e.version;
    }
  }

  // One tab listens for all. That it cannot may mean that one is signed out, which
  // each of them learns by asking.
  #feed(open: boolean) {
    const back = open && !this.online;
    this.online = open;
    if (back) void this.again();
    else if (!open) void this.refresh();
  }

  // again goes on after somebody has signed in anew, or Ken answers again.
  async again() {
    if (!this.me) { location.reload(); return; }
    await this.refresh();
    this.lapses++;
  }

  // refresh asks who is here. Somebody else begins anew.
  async refresh() {
    const newest = this.#newest();
    try {
      const me = await get<Me>("/me");
      if (!newest()) return;
      if (this.me && (me.id !== this.me.id || me.tenant !== this.me.tenant)) location.reload();
      this.me = me;
    } catch { /* the feed says that nobody answers */ }
  }

  // onRecord hears of new records of the trail until the returned function is called.
  onRecord(f: (r: TrailRecord) => void): () => void {
    this.#listeners.add(f);
    return () => this.#listeners.delete(f);
  }

  // onJob hears of jobs that change until the returned function is called.
  onJob(f: (id: string) => void): () => void {
    this.#workers.add(f);
    return () => this.#workers.delete(f);
  }

  // tell shows a line for a while. Screen readers say it.
  tell(text: string, bad = false) {
    const id = ++this.#toast;
    this.toasts.push({ id, text, bad });
    setTimeout(() => (this.toasts = this.toasts.filter((t) => t.id !== id)), bad ? 9000 : 4000);
  }
}

function listed({ catalog: c, own }: Me): Stats {
  return { ...c, capabilityCount: c.capabilityCount + own, active: c.active + own, available: c.available + own, graphNodes: c.graphNodes + own };
}

export const app = new App();

// words are what a person is told of something that went wrong.
export function words(e: unknown): string {
  if (e instanceof Refusal) return told(e.problem);
  return e instanceof Error ? e.message : String(e);
}
