// The conversations that can be opened.
import { app, words } from "../../lib/app.svelte";
import { get, inPath, post, remove } from "../../lib/api";
import { latest } from "../../lib/latest";
import type { SessionHead } from "../../lib/types";

interface Page { sessions: SessionHead[]; cut: boolean; problems?: string[] }

const most = 200; // that the server lists
const few = 15; // with something said in them: fewer, and more are read at once

export class Sessions {
  list = $state.raw<SessionHead[]>([]);
  cut = $state(false); // there are more
  problems = $state.raw<string[]>([]);
  #limit = 50;
  #newest = latest();
  loaded = $state(false);
  trouble = $state.raw<unknown>(null);

  get whole() {
    return this.#limit === most;
  }

  async load() {
    const current = this.#newest();
    try {
      const page = await get<Page>("/sessions", { limit: this.#limit });
      if (!current()) return;
      this.list = page.sessions;
      this.cut = page.cut;
      this.problems = page.problems ?? [];
      this.trouble = null;
      if (page.cut && !this.whole && page.sessions.filter((s) => s.turns).length < few) await this.more();
    } catch (e) {
      if (current()) this.trouble = e;
    }
    this.loaded = true;
  }

  more() {
    this.#limit = most;
    return this.load();
  }

  create(mode: string): Promise<SessionHead> {
    return post<SessionHead>("/sessions", { mode: mode || undefined });
  }

  async remove(id: string): Promise<boolean> {
    try {
      await remove("/sessions/" + inPath(id));
    } catch (e) {
      app.tell(words(e), true);
      return false;
    }
    this.list = this.list.filter((s) => s.id !== id);
    void this.load(); // a list that was asked for before has it still
    app.tell("Session deleted.");
    return true;
  }
}
