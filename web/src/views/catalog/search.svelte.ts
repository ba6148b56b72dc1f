// One search of the catalog after another. Every change asks at once and
// gives up the question before it, so what is shown is never older than what
// was typed by more than one answer.
import { tick } from "svelte";
import { get } from "../../lib/api";
import type { SearchAnswer } from "../../lib/types";

export interface Wish { q: string; kind: string; category: string; state: string; available: string /* "false": only what is unavailable */ }

// The server's answer names the page after it.
export type Found = SearchAnswer & { next?: string; facets: { moreCategories?: number } };

export type Hit = SearchAnswer["hits"][number];

const lowest = 50; // px of a row
const pageSize = 30; // three screens; every key draws it anew

export class Search {
  answer = $state.raw<Found | null>(null);
  below = $state.raw<Hit[]>([]); // hits that are below the window: they follow when those in it are painted
  searched = $state(""); // the words that answer is for
  trouble = $state<unknown>(null);
  ms = $state(0); // from the key to the painted list, of the last search
  more = $state(false); // the next page is being fetched
  #running: AbortController | null = null;
  #wish: Wish | null = null;

  async ask(wish: Wish, since = performance.now()) {
    performance.mark("catalog-search-begin", { startTime: since });
    this.#running?.abort();
    const running = (this.#running = new AbortController());
    try {
      const answer = await get<Found>("/search", { ...wish, limit: pageSize }, running.signal);
      if (running.signal.aborted) return;
      this.#wish = wish;
      this.#take(answer, wish.q);
      await this.#painted(running.signal, since);
      if (!running.signal.aborted) this.below = answer.hits.slice(this.above);
    } catch (e) {
      if (!running.signal.aborted) this.trouble = e;
    }
  }

  // above are so many hits that they fill the window.
  get above() {
    return Math.ceil(innerHeight / lowest);
  }

  #take(answer: Found, searched: string) {
    this.answer = answer;
    this.searched = searched;
    this.trouble = null;
    this.below = this.below.slice(0, Math.max(0, answer.hits.length - this.above)); // rows are changed, not made anew
  }

  // next fetches the page after what is shown.
  async next() {
    const shown = this.answer;
    if (!shown?.next || !this.#wish || this.more) return;
    const running = this.#running;
    this.more = true;
    try {
      const page = await get<Found>("/search", { ...this.#wish, limit: pageSize, after: shown.next }, running?.signal);
      if (this.answer !== shown) return;
      const known = new Set(shown.hits.map((h) => h.id));
      this.answer = { ...page, hits: [...shown.hits, ...page.hits.filter((h) => !known.has(h.id))] };
      this.below = this.answer.hits.slice(this.above);
    } catch (e) {
      if (!running?.signal.aborted) this.trouble = e;
    } finally {
      this.more = false;
    }
  }

  stop() {
    this.#running?.abort();
  }

  // A task that is queued in a frame runs after that frame was painted.
  async #painted(signal: AbortSignal, since: number) {
    await tick();
    await new Promise<void>((done) => requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => { port1.close(); done(); };
      port2.postMessage(null);
    }));
    if (signal.aborted) return;
    performance.mark("catalog-search-painted");
    this.ms = performance.measure("catalog-search", "catalog-search-begin", "catalog-search-painted").duration;
  }
}
