// Takes code apart for colouring. The languages are those that tools and models
// write most; what is unknown stays plain.
import Prism from "prismjs/components/prism-core";
import "prismjs/components/prism-clike";
import "prismjs/components/prism-javascript";
import "prismjs/components/prism-typescript";
import "prismjs/components/prism-json";
import "prismjs/components/prism-bash";
import "prismjs/components/prism-python";
import "prismjs/components/prism-go";
import "prismjs/components/prism-yaml";
import "prismjs/components/prism-sql";
import "prismjs/components/prism-diff";
import "prismjs/components/prism-markup";
import "prismjs/components/prism-css";
import "prismjs/components/prism-rust";

export type Token = string | { kind: string; inside: Token[] };

const aliases: Record<string, string> = { js: "javascript", ts: "typescript", sh: "bash", shell: "bash", console: "bash", py: "python", golang: "go", yml: "yaml", html: "markup", xml: "markup", svg: "markup", rs: "rust", patch: "diff" };

const kinds: Record<string, string> = {
  comment: "comment", prolog: "comment", doctype: "comment", cdata: "comment",
  string: "string", char: "string", "attr-value": "string", "template-string": "string", url: "string",
  keyword: "keyword", atrule: "keyword", important: "keyword", boolean: "keyword",
  number: "number", constant: "number",
  function: "name", "class-name": "name", tag: "name", property: "name", key: "name", selector: "name", builtin: "name",
  deleted: "deleted", "deleted-sign": "deleted", inserted: "inserted", "inserted-sign": "inserted",
};

function grammarOf(language: string): Prism.Grammar | null {
  const name = language.toLowerCase();
  const key = Object.hasOwn(aliases, name) ? aliases[name]! : name;
  const grammar: unknown = Object.hasOwn(Prism.languages, key) ? Prism.languages[key] : null;
  return grammar && typeof grammar === "object" ? (grammar as Prism.Grammar) : null;
}

// knows is whether code in this language is coloured at all.
export const knows = (language: string) => grammarOf(language) !== null;

const piece = 1_500; // characters that are taken apart at once, up to the end of a line
const enough = 40; // ms; what is not coloured by then stays plain

// tokenize takes code apart. A text made for that can keep the expressions of a
// language busy for ever, so it is done in pieces, for as long as there is time.
export function tokenize(text: string, language: string): Token[] {
  const grammar = grammarOf(language);
  if (!grammar) return [text];
  const out: Token[] = [];
  const end = performance.now() + enough;
  let at = 0;
  while (at < text.length && performance.now() < end) {
    const line = text.indexOf("\n", Math.min(text.length, at + piece) - 1) + 1;
    const to = line > 0 && line - at <= 2 * piece ? line : Math.min(text.length, at + piece);
    out.push(...convert(Prism.tokenize(text.slice(at, to), grammar)));
    at = to;
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

function convert(list: (string | Prism.Token)[]): Token[] {
  return list.map((t) => {
    if (typeof t === "string") return t;
    const content = Array.isArray(t.content) ? t.content : [t.content];
    return { kind: kinds[t.type] ?? "plain", inside: convert(content as (string | Prism.Token)[]) };
  });
}
