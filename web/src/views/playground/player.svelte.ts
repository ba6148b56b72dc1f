// Plays a message against the finder, with settings and without them. At most
// one question is on its way; of what changes meanwhile, only the last is asked.
import { post } from "../../lib/api";
import type { Play } from "../../lib/types";
import type { Value, Values } from "./knobs";

export interface Said { role: "user" | "assistant"; text: string }
export type Played = Omit<Play, "settings" | "defaults"> & { settings: Values; defaults: Values };

export class Player {
  query = $state("");
  before = $state<Said[]>([]);
  changed = $state<Values>({});
  now = $state.raw<Played | null>(null);
  base = $state.raw<Played | null>(null); // of the same message, with nothing changed
  trouble = $state.raw<unknown>(null);
  #running = false;
  #again = false;
  #baseFor = "";
  #age = 0; // of the catalog

  set(key: string, value: Value) {
    if (this.now && this.now.defaults[key] === value) delete this.changed[key];
    else this.changed[key] = value;
    void this.play();
  }
  reset(key?: string) {
    if (key) delete this.changed[key];
    else this.changed = {};
    void this.play();
  }

  // anew forgets what was answered: the catalog is another one.
  anew() {
    this.#age++;
    this.#baseFor = "";
    void this.play();
  }

  async play() {
    if (this.#running) {
      this.#again = true;
      return;
    }
    this.#running = true;
    do {
      this.#again = false;
      await this.#once();
    } while (this.#again);
    this.#running = false;
  }

  async #once() {
    const q = this.query.trim();
    if (!q) {
      this.now = this.base = null;
      this.#baseFor = "";
      this.trouble = null;
      return;
    }
    const before = $state.snapshot(this.before).filter((m) => m.text.trim());
    const override = $state.snapshot(this.changed);
    const age = this.#age;
    const message = JSON.stringify([q, before]);
    const ask = (values: Values) => post<Played>("/play", { q, before, override: values });
    try {
      const plain = this.#baseFor === message && this.base ? this.base : ask({});
      const [base, now] = await Promise.all([plain, Object.keys(override).length ? ask(override) : plain]);
      this.base = base;
      this.now = now;
      this.#baseFor = age === this.#age ? message : ""; // of another catalog it is no base
      this.trouble = null;
    } catch (e) {
      this.trouble = e;
    }
  }
}
