// The conversation that is open: what was said, what is happening, and what a
// person can do about it.
import { app } from "../../lib/app.svelte";
import { count } from "../../lib/format";
import { follow, get, inPath, post, Refusal } from "../../lib/api";
import type { Session, SessionHead, TurnEvent } from "../../lib/types";
import { begun, hear, open, read, type Exchange } from "./fold";

export interface Picture { name: string; mime: string; data: string /* base64 */; size: number }
export interface Reply { yes?: boolean; scope?: string; text?: string; answers?: Record<string, unknown> }

const names: TurnEvent["type"][] = [
  "said", "selected", "delta", "started", "output", "asked", "answered", "finished", "intended", "notice", "step", "done", "failed", "reset", "idle",
];

const pace = 40; // ms

export class Talk {
  id = $state("");
  head = $state.raw<SessionHead | null>(null);
  turns = $state.raw<Exchange[]>([]);
  running = $state(false);
  trouble = $state.raw<unknown>(null); // why it cannot be shown
  refused = $state.raw<unknown>(null); // the last thing that was asked for and not done, until it is read
  connected = $state(true);
  older = $state(0); // turns before this one were not read; 0: all were
  asked = $derived(open(this.turns));
  intent = $derived(this.running ? (this.turns.at(-1)?.intents.at(-1) ?? "") : "");

  #close = () => {};
  #queue: TurnEvent[] = [];
  #waits = false; // for the next picture
  #flushed = 0; // when the last one was folded
  #age = 0; // of what is open: answers to what was asked before are dropped

  // open shows a session, or none.
  async open(id: string) {
    if (id === this.id && !this.trouble) return;
    this.close();
    this.id = id;
    this.trouble = this.refused = null;
    this.head = null;
    this.turns = [];
    this.older = 0;
    this.running = false;
    if (id) await this.#read();
  }

  // close stops listening. The turn that runs goes on without the page.
  close() {
    this.#age++;
    this.#close();
    this.#queue = [];
    this.connected = true;
    this.id = "";
  }

  async #read() {
    const age = ++this.#age;
    this.#close();
    try {
      const s = await get<Session>("/sessions/" + inPath(this.id));
      if (age !== this.#age) return;
      this.#queue = [];
      this.head = s.head;
      this.turns = read(s);
      this.older = s.older ?? 0;
      this.running = s.running;
      this.#close = follow<TurnEvent>({
        path: `/sessions/${inPath(this.id)}/events`, after: s.after, names,
        each: (e) => { if (age === this.#age) this.#take(e); },
        state: (open) => { if (age === this.#age) this.connected = open; },
      });
    } catch (e) {
      if (age === this.#age) this.trouble = e;
    }
  }

  // Events are folded together, once for each picture that the screen shows, and
  // not faster than people read: every time, what grew is laid out anew.
  #take(e: TurnEvent) {
    if (e.type === "reset") { void this.#read(); return; }
    this.#queue.push(e);
    if (this.#waits) return;
    this.#waits = true;
    const flush = () => { this.#waits = false; this.#flush(); };
    const rest = pace - (performance.now() - this.#flushed);
    if (document.hidden) setTimeout(flush, 100);
    else if (rest > 0) setTimeout(() => requestAnimationFrame(flush), rest);
    else requestAnimationFrame(flush);
  }

  #flush() {
    let turns = this.turns;
    let running = this.running;
    let ended = false;
    for (const e of this.#queue) {
      turns = hear(turns, e);
      if (e.type === "done" || e.type === "failed") { running = false; ended = true; }
      else if (e.type === "idle") running = turns.at(-1)?.turn === 0; // what was just sent has not begun
      else if (e.type !== "answered" && e.type !== "asked") running = true;
    }
    this.#queue = [];
    this.turns = turns;
    this.running = running;
    this.#flushed = performance.now();
    if (ended) void app.refresh(); // another model may answer by now, or nothing may be called
  }

  // send says something in the session that is open. It reports whether the
  // server took it.
  async send(text: string, mode: string, images: Picture[]): Promise<boolean> {
    this.refused = null;
    this.turns = [...this.turns.filter((t) => t.turn > 0), begun(0, text, images.length, mode)];
    this.running = true;
    try {
      await post(`/sessions/${inPath(this.id)}/turns`, {
        text, mode: mode || undefined, noMode: (!mode && !!this.head?.mode) || undefined,
        images: images.length ? images.map((p) => ({ mime: p.mime, data: p.data })) : undefined,
      });
      return true;
    } catch (e) {
      this.turns = this.turns.filter((t) => t.turn > 0);
      this.running = this.turns.at(-1)?.live ?? false;
      this.refused = e;
      return false;
    }
  }

  async #do(what: string, body: unknown = {}): Promise<boolean> {
    this.refused = null;
    try {
      await post(`/sessions/${inPath(this.id)}/${what}`, body);
      return true;
    } catch (e) {
      this.refused = e;
      return false;
    }
  }

  stop = () => this.#do("abort");
  retry = () => this.#do("retry", { turn: this.turns.at(-1)?.turn });

  // goOn continues a turn that did not end with an answer.
  async goOn() {
    if (await this.#do("turns", { continue: true })) this.running = true;
  }

  // earlier reads turns that were left out because there are many.
  async earlier() {
    const age = this.#age;
    try {
      const s = await get<Session>("/sessions/" + inPath(this.id), { before: this.older });
      if (age !== this.#age) return;
      this.turns = [...read({ ...s, running: false, asked: [] }), ...this.turns];
      this.older = s.older ?? 0;
    } catch (e) {
      this.refused = e;
    }
  }

  async compact() {
    try {
      const c = await post<{ before: number; after: number; how: string; why: string }>(`/sessions/${inPath(this.id)}/compact`);
      app.tell(c.how ? `What was said is ${c.how}: ${count(c.before)} tokens are now ${count(c.after)}.` : c.why || "There was nothing to sum up.");
    } catch (e) {
      this.refused = e;
    }
  }

  // rewind takes back a turn and all after it, and gives what was said.
  async rewind(turn: number): Promise<string> {
    try {
      const { said } = await post<{ said: string }>(`/sessions/${inPath(this.id)}/rewind`, { turn });
      await this.#read();
      return said;
    } catch (e) {
      this.refused = e;
      return "";
    }
  }

  // answer answers what is asked. Where somebody else was faster, that is said. A
  // turn that stopped to wait goes on when all of it has its answer.
  async answer(asked: string, reply: Reply): Promise<boolean> {
    try {
      await post(`/sessions/${inPath(this.id)}/answers/${inPath(asked)}`, reply);
      if (!this.running) {
        this.turns = hear(this.turns, { type: "answered", id: asked, yes: !!reply.yes, text: reply.text });
        if (!this.asked.length) await this.goOn();
      }
      return true;
    } catch (e) {
      this.refused = e;
      if (e instanceof Refusal && (e.problem.status === 404 || e.problem.status === 409)) await this.#read();
      return false;
    }
  }
}
