// Takes Markdown apart, also while it still comes.
import { Lexer, type Token, type TokensList } from "marked";

const longest = 200_000; // characters that are taken apart; what is longer is drawn as it is

// The parser's time grows with the square of the marks in a block, and of the
// longest word. Nobody writes so much of them but to hold the page up.
const mostWork = 2_000_000;
const longestWord = 4_000;

// tooMuch is whether a text would take the parser too long. Code between fences
// costs it nothing.
export function tooMuch(source: string): boolean {
  if (source.length > longest) return true;
  let work = 0, marks = 0, word = 0, fence = "";
  for (const line of source.split("\n")) {
    const bar = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (bar && (!fence || (bar.startsWith(fence)))) { fence = fence ? "" : bar; continue; }
    if (fence) continue;
    if (!line.trim()) marks = 0; // a block ends
    for (let i = 0; i < line.length; i++) {
      const c = line.charCodeAt(i);
      word = c === 32 || c === 9 ? 0 : word + 1;
      if (word > longestWord) return true;
      // * _ ~ ` [ ] < ! @ & \ :
      if (c === 42 || c === 95 || c === 126 || c === 96 || c === 91 || c === 93 || c === 60 || c === 33 || c === 64 || c === 38 || c === 92 || c === 58) work += ++marks;
    }
    word = 0;
    if (work > mostWork) return true;
  }
  return false;
}

function lex(source: string, known: TokensList["links"]): TokensList | null {
  if (tooMuch(source)) return null;
  try {
    const lexer = new Lexer({ gfm: true, breaks: false });
    Object.assign(lexer.tokens.links, known);
    return lexer.lex(source);
  } catch {
    return null; // nested deeper than the parser goes
  }
}

// A Reader gives the blocks of a text; null where it is drawn as it is. What
// stands keeps its tokens, and with them its elements.
export class Reader {
  #before = ""; // the blocks that stand, as text and as tokens
  #stand: Token[] = [];
  #links: TokensList["links"] = {};

  // read takes the whole text. What came bit by bit is whole already, unless a
  // link may be named before the place that says where it leads.
  read(source: string): Token[] | null {
    if (this.#before && source.startsWith(this.#before) && !/^ {0,3}\[[^\]]+\]:/m.test(source)) return this.grow(source);
    return lex(source, {});
  }

  // grow takes a text that only grows: blocks before the last one cannot change
  // any more, so only the last is read again.
  grow(source: string): Token[] | null {
    if (!source.startsWith(this.#before)) [this.#before, this.#stand, this.#links] = ["", [], {}];
    const fresh = lex(source.slice(this.#before.length), this.#links);
    if (!fresh) return null;
    const last = fresh.findLastIndex((t) => t.type !== "space");
    const raw = fresh.slice(0, Math.max(0, last)).map((t) => t.raw).join("");
    if (last <= 0 || !source.startsWith(raw, this.#before.length)) return [...this.#stand, ...fresh]; // tabs may have become spaces
    this.#stand = [...this.#stand, ...fresh.slice(0, last)];
    this.#before += raw;
    this.#links = fresh.links;
    return [...this.#stand, ...fresh.slice(last)];
  }
}
