// One conversation: what was said, what is happening, what is being written, and
// what a person can do about it.
import { app, words } from "../../lib/app.svelte";
import { count } from "../../lib/format";
import { follow, get, inPath, post, Refusal } from "../../lib/api";
import { latest } from "../../lib/latest";
import type { Session, SessionHead, TurnEvent } from "../../lib/types";
import { draftOf } from "./draft.svelte";
import { begun, hear, open, read, type Exchange } from "./fold";
import type { Picture } from "./pictures";

export interface Reply { yes?: boolean; scope?: string; covers?: string; text?: string; answers?: Record<string, unknown> }

const names: TurnEvent["type"][] = [
  "said", "selected", "delta", "started", "output", "asked", "answered", "finished", "intended", "notice", "step", "done", "failed", "reset", "idle",
];

const pace = 40; // ms

// A Talk is of one session for good, and whoever opens another makes another: so
// whatever is answered late is answered where it was asked.
export class Talk {
  id = $state(""); // empty until a new one has begun
  draft = $derived(draftOf(this.id));
  mode = $state("");
  busy = $state(false); // what was written is on its way
  here = true; // it is shown
  head = $state.raw<SessionHead | null>(null);
  turns = $state.raw<Exchange[]>([]);
  running = $state(false);
  trouble = $state.raw<unknown>(null); // why it cannot be shown
  refused = $state.raw<unknown>(null); // the last thing that was asked for and not done, until it is read
  connected = $state(true);
  older = $state(0); // turns before this one were not read; 0: all were
  asked = $derived(open(this.turns));
  intent = $derived(this.running ? (this.turns.at(-1)?.intents.at(-1) ?? "") : "");

  #deaf = () => {}; // ends the listening
  #queue: TurnEvent[] = [];
  #waits = false; // for the next picture
  #flushed = 0; // when the last one was folded
  #newest = latest(); // of what was read

  constructor(id: string, mode: string) {
    this.id = id;
    this.mode = mode;
  }

  // begin makes of a new one the session that was made for it. What is written by
  // then goes along with who is still here.
  begin(head: SessionHead) {
    const before = this.draft;
    this.head = head;
    this.id = head.id;
    if (this.here) this.draft.take(before);
  }

  // close stops listening. What runs goes on without the page, and what is on its
  // way is done.
  close() {
    this.here = false;
    this.#newest();
    this.#deaf();
    this.#queue = [];
  }

  // read shows the session as it is, and listens to what comes.
  async read() {
    if (!this.id || !this.here) return;
    const current = this.#newest();
    this.#deaf();
    this.trouble = null;
    try {
      const s = await get<Session>("/sessions/" + inPath(this.id));
      if (!current()) return;
      this.#queue = [];
      if (!this.head) this.mode = s.head.mode ?? "";
      this.head = s.head;
      this.turns = read(s);
      this.older = s.older ?? 0;
      this.running = s.running;
      this.#deaf = follow<TurnEvent>({
        path: `/sessions/${inPath(this.id)}/events`, after: s.after, names,
        each: (e) => { if (current()) this.#take(e); },
        state: (open) => { if (current()) this.connected = open; },
      });
    } catch (e) {
      if (current()) this.trouble = e;
    }
  }

  // Events are folded together, once for each picture that the screen shows, and
  // not faster than people read: every time, what grew is laid out anew.
  #take(e: TurnEvent) {
    if (e.type === "reset") { void this.read(); return; }
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
    const last = turns.at(-1);
    // What could not even begin is in no session: it is written again, to be sent again.
    if (ended && last?.failed && !last.command) this.draft.giveBack(last.said, []);
    this.#flushed = performance.now();
    if (ended) void app.refresh(); // another model may answer by now, or nothing may be called
  }

  // refuse tells why something was not done; to who is elsewhere by now, in passing.
  refuse(why: unknown): false {
    if (this.here) this.refused = why;
    else app.tell("In the previous session: " + words(why), true);
    return false;
  }

  // send says something. It reports whether the server took it.
  async send(text: string, images: Picture[]): Promise<boolean> {
    this.refused = null;
    this.turns = [...this.turns.filter((t) => t.turn > 0), begun(0, text, images.length, this.mode)];
    this.running = true;
    try {
      await post(`/sessions/${inPath(this.id)}/turns`, {
        text, mode: this.mode || undefined, noMode: (!this.mode && !!this.head?.mode) || undefined,
        images: images.length ? images.map((p) => ({ mime: p.mime, data: p.data })) : undefined,
      });
      return true;
    } catch (e) {
      this.turns = this.turns.filter((t) => t.turn > 0);
      this.running = this.turns.at(-1)?.live ?? false;
      return this.refuse(e);
    }
  }

  async #do(what: string, body: unknown = {}): Promise<boolean> {
    this.refused = null;
    try {
      await post(`/sessions/${inPath(this.id)}/${what}`, body);
      return true;
    } catch (e) {
      return this.refuse(e);
    }
  }

  // #run lets the last turn run once more. It runs from the click on, so that a
  // second click is none.
  async #run(what: string, body: unknown) {
    if (this.running) return;
    this.running = true;
    if (!(await this.#do(what, body))) this.running = this.turns.at(-1)?.live ?? false;
  }

  stop = () => this.#do("abort");
  retry = () => this.#run("retry", { turn: this.turns.at(-1)?.turn });
  goOn = () => this.#run("turns", { continue: true }); // a turn that did not end with an answer

  // earlier reads turns that were left out because there are many.
  async earlier() {
    const before = this.older;
    try {
      const s = await get<Session>("/sessions/" + inPath(this.id), { before });
      if (before !== this.older) return; // they are there already
      this.turns = [...read({ ...s, running: false, asked: [] }), ...this.turns];
      this.older = s.older ?? 0;
    } catch (e) {
      this.refuse(e);
    }
  }

  async compact() {
    try {
      const c = await post<{ before: number; after: number; how: string; why: string }>(`/sessions/${inPath(this.id)}/compact`);
      if (this.here) app.tell(c.how ? `The conversation was ${c.how}: ${count(c.before)} tokens are now ${count(c.after)}.` : c.why || "There was nothing to summarize.");
    } catch (e) {
      this.refuse(e);
    }
  }

  // rewind takes back a turn and all after it; what was said in it is written again.
  async rewind(turn: number) {
    try {
      const { said } = await post<{ said: string }>(`/sessions/${inPath(this.id)}/rewind`, { turn });
      await this.read();
      if (said) this.draft.text = said;
    } catch (e) {
      this.refuse(e);
    }
  }

  // answer answers what is asked. Where somebody else was faster, that is said. A
  // turn that stopped to wait goes on when all of it has its answer.
  async answer(asked: string, reply: Reply): Promise<boolean> {
    try {
      await post(`/sessions/${inPath(this.id)}/answers/${inPath(asked)}`, reply);
      if (!this.running && this.asked.some((q) => q.id === asked)) {
        this.turns = hear(this.turns, { type: "answered", id: asked, yes: !!reply.yes, text: reply.text });
        if (!this.asked.length) await this.goOn();
      }
      return true;
    } catch (e) {
      this.refuse(e);
      if (e instanceof Refusal && (e.problem.status === 404 || e.problem.status === 409)) await this.read();
      return false;
    }
  }
}
