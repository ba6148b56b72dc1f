// What may stand where a person writes, while the line begins with a slash.
import { get } from "../../lib/api";
import type { Completion } from "../../lib/types";

// What the page does by itself.
export const words = [
  { text: "/new", description: "start a new session" },
  { text: "/mode", description: "/mode NAME switches to a mode, /mode none to no mode" },
  { text: "/rewind", description: "remove the last turn; /rewind N removes turn N and all after it" },
  { text: "/compact", description: "summarize the conversation so far to free context" },
  { text: "/help", description: "list commands and keys" },
];

const encoder = new TextEncoder();
const decoder = new TextDecoder();

// The server counts bytes, a text field counts its own units.
const bytes = (s: string) => encoder.encode(s).length;
const units = (s: string, at: number) => decoder.decode(encoder.encode(s).slice(0, at)).length;

export class Completing {
  list = $state.raw<Completion[]>([]);
  at = $state(0);
  open = $derived(this.list.length > 0);
  #last: AbortController | undefined;

  async ask(line: string, cursor: number, modes: string[]) {
    this.#last?.abort();
    if (!line.startsWith("/") || line.includes("\n")) { this.close(); return; }
    const mine = (this.#last = new AbortController());
    const own = this.#own(line.slice(0, cursor), modes);
    let found: Completion[] = [];
    try {
      found = (await get<{ completions: Completion[] }>("/complete", { line, cursor: bytes(line.slice(0, cursor)) }, mine.signal)).completions ?? [];
    } catch {
      if (mine.signal.aborted) return; // something newer was written
    }
    const taken = new Set(own.map((c) => c.text));
    const rest = found.map((c) => ({ ...c, start: units(line, c.start), end: units(line, c.end) })).filter((c) => !taken.has(c.text));
    const list = [...own, ...rest].slice(0, 100);
    const exact = list.length === 1 && line.slice(list[0]!.start, cursor) === list[0]!.text;
    this.list = exact ? [] : list;
    this.at = 0;
  }

  #own(head: string, modes: string[]): Completion[] {
    const mode = /^\/mode\s+(\S*)$/.exec(head);
    if (mode) return [...modes, "none"].filter((m) => m.startsWith(mode[1]!)).map((text) => ({ text, start: head.length - mode[1]!.length, end: head.length, kind: "value" }));
    if (/\s/.test(head)) return [];
    return words.filter((w) => w.text.startsWith(head)).map((w) => ({ ...w, start: 0, end: head.length, kind: "command" }));
  }

  move(by: number) {
    this.at = (this.at + by + this.list.length) % this.list.length;
  }

  close() {
    this.#last?.abort();
    this.list = [];
  }

  // take gives the line with what is chosen in it, and where the cursor is then.
  take(line: string, at = this.at): { line: string; cursor: number } {
    const c = this.list[at]!;
    const space = c.kind === "command" && !line.slice(c.end).startsWith(" ") ? " " : "";
    this.close();
    return { line: line.slice(0, c.start) + c.text + space + line.slice(c.end), cursor: c.start + c.text.length + space.length };
  }
}
