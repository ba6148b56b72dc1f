// Colours code where the page has time for it: what takes it apart is fetched
// after the first picture, and works between two of them.
import type { Token } from "./highlight";

let highlight = $state.raw<typeof import("./highlight") | null>(null);
let asked = false;

function fetchIt() {
  if (asked) return;
  asked = true;
  import("./highlight").then((m) => (highlight = m), () => { /* code stays plain */ });
}

const idle = (f: () => void): (() => void) => {
  if (!("requestIdleCallback" in globalThis)) { // Safari
    const id = setTimeout(f, 30);
    return () => clearTimeout(id);
  }
  const id = requestIdleCallback(f, { timeout: 1000 });
  return () => cancelIdleCallback(id);
};

const longest = 60_000; // characters; what is longer stays plain
const longestLive = 6_000; // while it grows, it is coloured again and again

// Colouring is text with the colours that it has so far: what came since the last
// time is plain until the next.
export class Colouring {
  #done = $state.raw<{ text: string; language: string; tokens: Token[] } | null>(null);

  constructor(private text: () => string, private language: () => string, private live: () => boolean) {
    $effect(() => {
      const [t, l] = [this.text(), this.language()];
      if (!l || t.length > (this.live() ? longestLive : longest)) return;
      fetchIt();
      const by = highlight;
      if (!by?.knows(l)) return;
      return idle(() => (this.#done = { text: t, language: l, tokens: by.tokenize(t, l) }));
    });
  }

  get tokens(): Token[] {
    const [text, done] = [this.text(), this.#done];
    if (!done || done.language !== this.language() || !text.startsWith(done.text)) return [text];
    return text.length === done.text.length ? done.tokens : [...done.tokens, text.slice(done.text.length)];
  }
}
