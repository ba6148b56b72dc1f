// How the events of a turn become what is drawn of it. Nothing here knows of the
// page: fold gives a new exchange and leaves the one it was given as it is, so
// that what did not change is not drawn again.
import type { Asked, CallResult, Item, Problem, Session, Turn, TurnEvent, Usage } from "../../lib/types";

export type CallItem = Extract<Item, { type: "call" }> & { output?: string; outputCut?: boolean; error?: string /* why it was not made */ };
export type QuestionItem = { type: "question"; asked: Asked; answer?: { yes: boolean; text?: string } };
export type Drawn = Exclude<Item, { type: "call" }> | CallItem | QuestionItem;

// An Exchange is what was said and everything that came of it.
export interface Exchange {
  turn: number; // 0: it is sent, and the server has not named it yet
  time: string; said: string; mode?: string; images: number; command: boolean;
  items: Drawn[];
  live: boolean; // more will come
  waits: boolean; // it is over until somebody answers
  usage?: Usage; cost?: number; steps?: number; end?: string; why?: string;
  intents: string[]; // of the turn, the newest last
  seen: TurnEvent[]; // what the inspector shows, while it is
  whole: boolean; // the turn was followed from its first event: seen is all there is
  inspectable: boolean;
  failed?: Problem;
}

const tail = 6000; // characters of a running call's output that are drawn

export const begun = (turn: number, said: string, images = 0, mode?: string): Exchange => ({
  turn, time: new Date().toISOString(), said, mode, images, command: said.startsWith("/"),
  items: [], live: true, waits: false, intents: [], seen: [], whole: turn > 0, inspectable: true,
});

// kept makes an exchange of a turn that was read.
export function kept(t: Turn, live: boolean): Exchange {
  return {
    turn: t.turn, time: t.time, said: t.said, images: t.images ?? 0, command: !!t.command, items: t.items ?? [],
    live, waits: t.end === "waiting", usage: t.usage, cost: t.cost, end: t.end, why: t.why,
    intents: [...new Set((t.items ?? []).flatMap((i) => (i.type === "call" && i.intent ? [i.intent] : [])))],
    seen: [], whole: false, inspectable: t.inspectable,
  };
}

// read makes the exchanges of a session. What is still asked stands at the end
// of the last one.
export function read(s: Session): Exchange[] {
  const turns = (s.turns ?? []).map((t, i, all) => kept(t, s.running && i === all.length - 1 && !t.end));
  const last = turns.at(-1);
  // What a turn asks that is not among these comes with its events.
  if (last && (last.live || !s.running)) turns[turns.length - 1] = (s.asked ?? []).reduce(ask, { ...last, waits: !s.running && !!s.asked?.length });
  return turns;
}

// hear folds an event into a conversation.
export function hear(turns: Exchange[], e: TurnEvent): Exchange[] {
  if (e.type === "said") {
    const pending = turns.find((t) => t.turn === 0);
    const same = turns.find((t) => t.turn === e.turn && !t.failed); // it waited, and goes on
    const fresh = same ? { ...same, live: true, waits: false, end: undefined } : begun(e.turn, e.text, e.images ?? pending?.images, e.mode);
    const older = turns.filter((t) => t.turn > 0 && t.turn < e.turn).map((t) => (t.live ? { ...t, live: false } : t));
    return [...older, fresh];
  }
  const last = turns.at(-1);
  if (!last || e.type === "reset") return turns;
  if (e.type === "idle") return last.live && last.turn > 0 ? [...turns.slice(0, -1), { ...last, live: false }] : turns;
  return [...turns.slice(0, -1), fold(last, e)];
}

// fold adds an event to the exchange it belongs to.
export function fold(x: Exchange, e: TurnEvent): Exchange {
  switch (e.type) {
    case "delta": {
      let items = x.items;
      if (e.thought) items = grow(items, "thought", e.thought);
      if (e.text) items = grow(items, "text", e.text);
      return { ...x, live: true, end: undefined, items };
    }
    case "started":
      return { ...x, live: true, end: undefined, items: [...x.items, { type: "call", ...e.call }] };
    case "output":
      return change(x, e.id, (c) => {
        const all = (c.output ?? "") + e.text;
        return { ...c, output: all.slice(-tail).replace(/^[\uDC00-\uDFFF]/, ""), outputCut: c.outputCut || all.length > tail };
      });
    case "finished": {
      const result = resultOf(e);
      if (!x.items.some((i) => i.type === "call" && i.id === e.id)) {
        return { ...x, items: [...x.items, { type: "call", id: e.id, target: e.target, result, error: e.error }] };
      }
      return change(x, e.id, (c) => ({ ...c, result, error: e.error, output: undefined, outputCut: undefined }));
    }
    case "asked":
      return ask(x, e);
    case "answered":
      return { ...x, items: x.items.map((i) => (i.type === "question" && i.asked.id === e.id ? { ...i, answer: { yes: e.yes, text: e.text } } : i)) };
    case "notice":
      return { ...x, seen: [...x.seen, e], items: [...x.items, { type: "notice", name: e.name, text: e.text }] };
    case "intended":
      return { ...x, seen: [...x.seen, e], intents: e.chain?.length ? e.chain : [...x.intents, e.intent] };
    case "selected": case "step":
      return { ...x, seen: [...x.seen, e] };
    case "done":
      return {
        ...x, live: false, waits: e.reason === "waiting", turn: e.turn || x.turn, usage: e.usage, cost: e.cost, steps: e.steps, end: e.reason, why: e.why,
        seen: [...x.seen, e], items: shows(x.items, e.reason) ? x.items : withAnswer(x.items, e.text),
      };
    case "failed":
      return { ...x, live: false, failed: e.problem };
  }
  return x; // of a newer server: what is not known is not drawn
}

// ask puts a question where it came up, once.
function ask(x: Exchange, asked: Asked): Exchange {
  if (x.items.some((i) => i.type === "question" && i.asked.id === asked.id)) return x;
  return { ...x, items: [...x.items, { type: "question", asked }] };
}

function grow(items: Drawn[], type: "text" | "thought", more: string): Drawn[] {
  const last = items.at(-1);
  if (last?.type === type) return [...items.slice(0, -1), { type, text: last.text + more }];
  return [...items, { type, text: more }];
}

// change changes the newest call with that id: a model may use one twice.
function change(x: Exchange, id: string, how: (c: CallItem) => CallItem): Exchange {
  const at = x.items.findLastIndex((i) => i.type === "call" && i.id === id);
  if (at < 0) return x;
  return { ...x, items: x.items.with(at, how(x.items[at] as CallItem)) };
}

// withAnswer adds the whole answer where it did not come bit by bit, as that of
// a command.
function withAnswer(items: Drawn[], answer: string): Drawn[] {
  const bare = (s: string) => s.replace(/\s+/g, "");
  const want = bare(answer);
  if (!want) return items;
  const came = bare(items.map((i) => (i.type === "text" ? i.text : "")).join(""));
  return came.endsWith(want) || (came && want.endsWith(came)) ? items : [...items, { type: "text", text: answer }];
}

// shows reports whether what a command gave is drawn as that of its call.
const shows = (items: Drawn[], reason: string) => reason === "command" && items.some((i) => i.type === "call" && i.result);

interface Part { text?: string; json?: unknown; data?: string; link?: string; mime?: string }

// resultOf is a result as the session will keep it.
function resultOf(e: Extract<TurnEvent, { type: "finished" }>): CallResult {
  const r = (e.result ?? {}) as { parts?: Part[]; failed?: boolean; handle?: string; meta?: Record<string, string> };
  const parts = r.parts ?? [];
  const text = parts.map((p) => p.text ?? (p.json !== undefined ? JSON.stringify(p.json, null, 2) : p.data ? `[${p.mime || "data"}]` : p.link ?? "")).filter(Boolean).join("\n");
  return {
    text: e.error && !text.includes(e.error) ? [e.error, text].filter(Boolean).join("\n") : text,
    failed: !!r.failed || !!e.error, kind: e.kind, handle: r.handle, job: r.meta?.job,
    images: parts.filter((p) => p.data && p.mime?.startsWith("image/")).length || undefined,
    tookMS: e.took / 1e6, cut: !!r.handle && text.includes("read_result"), // an excerpt says how to read the rest
  };
}

// open are the questions of a conversation that can still be answered.
export function open(turns: Exchange[]): Asked[] {
  const last = turns.at(-1);
  if (!last || !(last.live || last.waits)) return [];
  return last.items.flatMap((i) => (i.type === "question" && !i.answer ? [i.asked] : []));
}
