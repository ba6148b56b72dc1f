import * as assert from "node:assert/strict";
import test from "node:test";
import type { Asked, Session, Turn, TurnEvent } from "../../lib/types";
import { Random } from "../../testing/random";
import { begun, hear, open, read, type Exchange } from "./fold";

const usage = { input: 10, output: 2 };
const done = (turn: number, text: string, reason = "answer"): TurnEvent => ({ type: "done", session: "s", turn, reason, text, usage, steps: 1, calls: 0 });
const asked = (id: string): Asked => ({ type: "asked", id, what: "consent", text: "may it?" });
const follow = (turns: Exchange[], events: TurnEvent[]) => events.reduce(hear, turns);

// story makes the events of some turns, as a server sends them.
function story(random: Random): TurnEvent[] {
  const out: TurnEvent[] = [];
  const turns = 1 + random.below(4);
  for (let turn = 1; turn <= turns; turn++) {
    out.push({ type: "said", turn, text: "say " + turn });
    let text = "";
    for (let i = random.below(8); i > 0; i--) {
      const id = "c" + random.below(3);
      switch (random.below(6)) {
        case 0: out.push({ type: "delta", thought: "hm " + i }); break;
        case 1: out.push({ type: "started", call: { id, target: "tool:a", arguments: { i } } }, { type: "output", id, text: "line " + i }, { type: "finished", id, target: "tool:a", result: { parts: [{ text: "r" + i }] }, took: 1e6 }); break;
        case 2: out.push({ type: "notice", name: "limit", text: "n" + i }); break;
        case 3: { const q = `q${turn}-${i}`; out.push(asked(q), { type: "answered", id: q, yes: random.below(2) === 0 }); break; }
        case 4: out.push({ type: "step", number: i, usage, plain: 1, stop: "end" }); break;
        default: { const more = "word" + i + " "; text += more; out.push({ type: "delta", text: more }); }
      }
    }
    if (turn < turns || random.below(2)) out.push(done(turn, text));
  }
  return out;
}

// What is drawn, without what depends on when and how it was read.
const drawn = (turns: Exchange[]) => turns.map((x) => ({ turn: x.turn, said: x.said, live: x.live, waits: x.waits, end: x.end, items: x.items.filter((i) => i.type !== "question" || x.live) }));

// session is what the server would answer after so many events: the turns that
// are over, and up to where that is.
function session(events: TurnEvent[]): { s: Session; after: number } {
  let after = 0;
  events.forEach((e, i) => { if (e.type === "done") after = i + 1; });
  const over = follow([], events.slice(0, after));
  const turns: Turn[] = over.map((x) => ({ turn: x.turn, time: x.time, said: x.said, items: x.items.filter((i) => i.type !== "question"), usage: x.usage, end: x.end, inspectable: true }));
  return { s: { head: {} as Session["head"], turns, running: after < events.length, after: String(after) }, after };
}

test("wherever the connection was cut, reading and following on draws the same", () => {
  for (let seed = 1; seed <= 100; seed++) {
    const events = story(new Random(seed));
    const want = drawn(follow([], events));
    for (let cut = 0; cut <= events.length; cut++) {
      const { s, after } = session(events.slice(0, cut));
      assert.deepEqual(drawn(follow(read(s), events.slice(after))), want, `seed ${seed}, cut at ${cut} of ${events.length}`);
      assert.deepEqual(drawn(follow(follow([], events.slice(0, cut)), events.slice(cut))), want, `seed ${seed}, resumed at ${cut}`);
    }
  }
});

test("what was folded stays as it was", () => {
  const freeze = (v: unknown): void => { if (v && typeof v === "object" && !Object.isFrozen(v)) { Object.freeze(v); Object.values(v).forEach(freeze); } };
  for (let seed = 1; seed <= 50; seed++) {
    let turns: Exchange[] = [];
    for (const e of story(new Random(seed))) {
      freeze(turns);
      turns = hear(turns, e); // throws where it changes what it was given
    }
  }
});

test("what is sent becomes the turn that the server names", () => {
  const sent = [begun(0, "hello", 2)];
  const turns = hear(sent, { type: "said", turn: 7, text: "hello" });
  assert.deepEqual(turns.map((t) => [t.turn, t.said, t.images, t.live]), [[7, "hello", 2, true]]);
});

test("a question is asked once, and can be answered while its turn is open", () => {
  let turns = follow([], [{ type: "said", turn: 1, text: "x" }, asked("q"), asked("q")]);
  assert.equal(turns[0]!.items.length, 1);
  assert.deepEqual(open(turns).map((a) => a.id), ["q"]);
  turns = hear(turns, { type: "answered", id: "q", yes: true });
  assert.deepEqual(open(turns), []);
  assert.deepEqual(open(follow([], [{ type: "said", turn: 1, text: "x" }, asked("q"), done(1, "", "aborted")])), []);
  const waiting = follow([], [{ type: "said", turn: 1, text: "x" }, asked("q"), done(1, "", "waiting")]);
  assert.deepEqual(open(waiting).map((a) => a.id), ["q"]);
  assert.equal(hear(waiting, { type: "said", turn: 1, text: "" })[0]!.live, true); // it goes on
});

test("an answer that did not come bit by bit is added, and none twice", () => {
  const text = (events: TurnEvent[]) => follow([], [{ type: "said", turn: 1, text: "x" }, ...events])[0]!.items.map((i) => (i.type === "text" ? i.text : i.type));
  assert.deepEqual(text([done(1, "all of it")]), ["all of it"]);
  assert.deepEqual(text([{ type: "delta", text: "all " }, { type: "delta", text: "of it\n" }, done(1, "all of it")]), ["all of it\n"]);
  assert.deepEqual(text([{ type: "delta", text: "before" }, { type: "notice", name: "n", text: "t" }, { type: "delta", text: "after" }, done(1, "after")]), ["before", "notice", "after"]);
});

test("what a command gave is drawn once, with its call, and as a text where there is none", () => {
  const said: TurnEvent = { type: "said", turn: 1, text: "/list_files" };
  const call: TurnEvent[] = [{ type: "started", call: { id: "command_1", target: "tool:list_files" } }, { type: "finished", id: "command_1", target: "tool:list_files", result: { parts: [{ text: "a.txt" }], handle: "h" }, took: 1e6 }];
  const types = (events: TurnEvent[]) => follow([], [said, ...events])[0]!.items.map((i) => i.type);
  assert.deepEqual(types([...call, done(1, "a.txt\n(The whole result: read_result, handle h)", "command")]), ["call"]);
  assert.deepEqual(types([done(1, "it said this", "command")]), ["text"]);
  assert.deepEqual(types([call[0]!, done(1, "it said this", "command")]), ["call", "text"]); // what the call gave did not come
});

test("a call shows the newest of what it writes, then its result", () => {
  const begin: TurnEvent[] = [{ type: "said", turn: 1, text: "x" }, { type: "started", call: { id: "c", target: "tool:a" } }];
  const long = follow([], [...begin, { type: "output", id: "c", text: "a".repeat(7000) + "end" }])[0]!.items[0]!;
  assert.ok(long.type === "call" && long.output!.length === 6000 && long.output!.endsWith("end") && long.outputCut);
  const over = follow([], [...begin, { type: "output", id: "c", text: "a" }, { type: "finished", id: "c", target: "tool:a", result: { parts: [{ text: "r" }, { json: { a: 1 } }], handle: "h" }, took: 2e6 }])[0]!.items[0]!;
  assert.ok(over.type === "call" && over.output === undefined && over.result!.text === 'r\n{\n  "a": 1\n}' && over.result!.tookMS === 2 && !over.result!.cut, "what is whole is not called an excerpt");
  const refused = follow([], [{ type: "said", turn: 1, text: "x" }, { type: "finished", id: "n", target: "tool:b", result: null, error: "a rule", kind: "denied", took: 0 }])[0]!.items[0]!;
  assert.ok(refused.type === "call" && refused.result!.failed && refused.result!.text === "a rule", "a call that was never started is drawn too");
});

test("events of a newer server, and of no turn, change nothing", () => {
  assert.deepEqual(hear([], { type: "delta", text: "x" }), []);
  const turns = follow([], [{ type: "said", turn: 1, text: "x" }]);
  assert.deepEqual(drawn(hear(turns, { type: "of tomorrow" } as unknown as TurnEvent)), drawn(turns));
  assert.equal(hear(turns, { type: "idle" })[0]!.live, false);
});
