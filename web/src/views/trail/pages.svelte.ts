import { get } from "../../lib/api";
import type { TrailPage, TrailRecord } from "../../lib/types";
import { asked, type Filter } from "./filter";

// Pages reads the trail, newest first, a page at a time, and takes news in.
export class Pages {
  records = $state.raw<TrailRecord[]>([]);
  held = $state.raw<TrailRecord[]>([]); // news that wait until they are asked for
  problems = $state.raw<string[]>([]);
  older = $state("");
  loaded = $state(false); // there was an answer to the filter of now
  reads = $state(0); // pages
  busy = $state(false);
  error = $state<unknown>(null);
  #filter: Filter | null = null;
  #abort: AbortController | null = null;
  #known = new Set<string>();
  #news: TrailRecord[] = []; // that came since the newest page was asked for

  async begin(f: Filter) {
    this.#filter = f;
    this.loaded = false;
    this.#news = [];
    await this.#read("");
  }

  async more() {
    if (this.older && !this.busy) await this.#read(this.older);
  }

  async #read(older: string) {
    const f = this.#filter!;
    this.#abort?.abort();
    const mine = (this.#abort = new AbortController());
    this.busy = true;
    try {
      const page = await get<TrailPage>("/audit", { ...asked(f), older, limit: 200 }, mine.signal);
      if (mine !== this.#abort) return;
      this.reads = older ? this.reads + 1 : 1;
      if (!older) { this.#known.clear(); this.held = []; this.problems = []; }
      const has = new Set(page.records.map((r) => r.id));
      const fresh = [...(older ? [] : this.#news.filter((r) => !has.has(r.id))), ...page.records.filter((r) => !this.#known.has(r.id))];
      for (const r of fresh) this.#known.add(r.id);
      this.records = older ? [...this.records, ...fresh] : fresh;
      this.problems = [...this.problems, ...(page.problems ?? [])];
      this.older = page.older ?? "";
      [this.loaded, this.error] = [true, null];
    } catch (e) {
      if (!mine.signal.aborted) this.error = e;
    } finally {
      if (mine === this.#abort) this.busy = false;
    }
  }

  // hear takes a new record, at once or for later.
  hear(r: TrailRecord, later: boolean) {
    if (this.#known.has(r.id)) return;
    this.#known.add(r.id);
    if (!this.loaded) this.#news = [r, ...this.#news].slice(0, 1000);
    if (later) this.held = [r, ...this.held].slice(0, 1000);
    else this.records = [r, ...this.records];
  }

  release() {
    this.records = [...this.held, ...this.records];
    this.held = [];
  }
}
