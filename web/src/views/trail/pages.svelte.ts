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

  async begin(f: Filter) {
    this.#filter = f;
    this.loaded = false;
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
      const fresh = page.records.filter((r) => !this.#known.has(r.id));
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
    if (later) this.held = [r, ...this.held].slice(0, 1000);
    else this.records = [r, ...this.records];
  }

  release() {
    this.records = [...this.held, ...this.records];
    this.held = [];
  }
}
