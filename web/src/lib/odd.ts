// Characters that a person cannot see, or that change the order in which text is
// read: text could look like another one. They are named instead. The rule, and
// how they are named, are those of the terminal (internal/untrusted): joiners,
// selectors, direction marks and the tags of flags stay where a script or an emoji
// needs them. White space is left as it is, but for what ends lines in other
// programs alone, which is named too.

const classes: [name: string, of: RegExp][] = [
  ["control", /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u2028\u2029]/],
  ["bidi", /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/],
  ["selector", /[\u180B-\u180D\u180F\uFE00-\uFE0F\u{E0100}-\u{E01EF}]/u],
  ["tag", /[\u{E0001}\u{E0020}-\u{E007F}]/u],
  ["noncharacter", /[\u2065\uFFF0-\uFFF8\u{E0000}-\u{E0FFF}\p{Noncharacter_Code_Point}]/u],
  // Of the format characters only the signs that enclose digits draw.
  ["zero-width", /[\u034F\u115F\u1160\u17B4\u17B5\u2800\u3164\uFFA0]|(?![\u0600-\u0605\u06DD\u070F\u0890\u0891\u08E2\u{110BD}\u{110CD}])\p{Cf}/u],
  ["private", /\p{Co}/u],
  ["invalid", /\p{Cs}/u], // half of a character
];
const mostMarks = 8; // that one character may carry
const suspect = new RegExp(classes.map(([, of]) => of.source).join("|") + `|[\\p{Mn}\\p{Me}]{${mostMarks + 1}}`, "u");
const mark = /^[\p{Mn}\p{Me}]$/u;

// classOf says why a character may not be shown, without its neighbours; empty:
// it may.
const classOf = (c: string) => (suspect.test(c) ? (classes.find(([, of]) => of.test(c))?.[0] ?? "") : "");

const pictograph = /^[\u00A9\u00AE\u203C\u2049\u2122\u2139\u3030\u303D\u3297\u3299\u2190-\u21FF\u2300-\u23FF\u2460-\u24FF\u25A0-\u27BF\u2900-\u297F\u2B00-\u2BFF\u{1F000}-\u{1FAFF}]$/u;
const rightToLeft = /^(?=\p{L})[\p{sc=Hebrew}\p{sc=Arabic}\p{sc=Syriac}\p{sc=Thaana}\p{sc=Nko}\p{sc=Adlam}]$/u;
// Letters and marks of the scripts whose spelling uses the joiner and the non-joiner.
const joins = /^(?=[\p{L}\p{M}])[\p{sc=Arabic}\p{sc=Syriac}\p{sc=Nko}\p{sc=Mandaic}\p{sc=Mongolian}\p{sc=Devanagari}\p{sc=Bengali}\p{sc=Gurmukhi}\p{sc=Gujarati}\p{sc=Oriya}\p{sc=Tamil}\p{sc=Telugu}\p{sc=Kannada}\p{sc=Malayalam}\p{sc=Sinhala}\p{sc=Tibetan}\p{sc=Myanmar}\p{sc=Khmer}\p{sc=Balinese}\p{sc=Javanese}\p{sc=Hanifi_Rohingya}\p{sc=Adlam}]$/u;
const flag = /[\u{E0061}-\u{E007A}]{2}[\u{E0030}-\u{E0039}\u{E0061}-\u{E007A}]{1,4}\u{E007F}/uy;
const joining = (c: string) => joins.test(c) && !classOf(c);

// belongs is whether c, which draws nothing by itself, has its proper use between
// the character before it, which is shown, and the one after it.
function belongs(c: string, before: string, after: string): boolean {
  if (!before) return false;
  if (c === "\u200D" && (pictograph.test(before) || before === "\uFE0F") && pictograph.test(after)) return true;
  if (/[\u200C\u200D]/.test(c)) return joining(before) && (joining(after) || /\p{Mn}/u.test(before));
  if (/[\uFE0E\uFE0F]/.test(c)) return pictograph.test(before) || (after === "\u20E3" && /[0-9#*]/.test(before));
  if (/[\uFE00-\uFE0D]/.test(c)) return /[\u2200-\u2BFF\p{sc=Han}\p{sc=Myanmar}\p{sc=Phags_Pa}]/u.test(before);
  if (/[\u{E0100}-\u{E01EF}]/u.test(c)) return /\p{sc=Han}/u.test(before);
  if (/[\u180B-\u180F]/.test(c)) return /\p{sc=Mongolian}/u.test(before) && !classOf(before);
  if (/[\u17B4\u17B5]/.test(c)) return /\p{sc=Khmer}/u.test(before) && !classOf(before);
  if (c === "\u1160") return /[\u1100-\u115E]/.test(before);
  if (/[\u200E\u200F\u061C]/.test(c)) return rightToLeft.test(before) || (rightToLeft.test(after) && !/\s/.test(before));
  return false;
}

type Unit = { text: string; hidden: string /* its class; empty: it is shown */ };

// units takes text apart: characters, whole flags, and CR LF, which ends a line.
function* units(text: string): Generator<Unit> {
  const at = (i: number) => (i < text.length ? String.fromCodePoint(text.codePointAt(i)!) : "");
  let before = "", marks = 0;
  for (let i = 0; i < text.length;) {
    const c = at(i);
    let whole = c, hidden = classOf(c);
    const own = hidden;
    flag.lastIndex = i + c.length;
    if (c === "\u{1F3F4}") whole += flag.exec(text)?.[0] ?? "";
    else if (c === "\r" && text[i + 1] === "\n") hidden = "";
    else if (!hidden && mark.test(c)) { if (++marks > mostMarks) hidden = "marks"; }
    else if (hidden && hidden !== "invalid" && belongs(c, before, at(i + c.length))) hidden = "";
    // Joiners and selectors do not begin the count of marks afresh.
    if (!own && !hidden && !mark.test(c)) marks = 0;
    before = hidden ? "" : c;
    i += whole.length;
    yield { text: whole, hidden };
  }
}

const nameOf = (c: string) => "U+" + c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");

export type Piece = { text: string; name?: string };

// pieces takes text apart where a character has to be named. Each has a name of
// its own, and nothing is lost.
export function pieces(text: string): Piece[] {
  if (!suspect.test(text)) return text ? [{ text }] : [];
  const all: Piece[] = [];
  for (const u of units(text)) {
    const last = all.at(-1);
    if (u.hidden) all.push({ text: u.text, name: nameOf(u.text) });
    else if (last && !last.name) last.text += u.text;
    else all.push({ text: u.text });
  }
  return all;
}

// named is text with the names of such characters in it. Those in a row have one
// name, with their number.
export function named(text: string): string {
  if (!suspect.test(text)) return text;
  let out = "", run: Unit[] = [];
  const end = () => {
    const first = run[0];
    if (!first) return;
    const name = run.some((u) => u.hidden !== first.hidden) ? "hidden" : run.some((u) => u.text !== first.text) ? first.hidden : nameOf(first.text);
    out += `⟨${name}${run.length > 1 ? "×" + run.length : ""}⟩`;
    run = [];
  };
  for (const u of units(text)) {
    if (u.hidden) { run.push(u); continue; }
    end();
    out += u.text;
  }
  end();
  return out;
}

// drawn is what the page draws of a value: the build puts it around whatever
// stands in the markup of a component (build/naming.ts).
export const drawn = <T>(value: T) => (typeof value === "string" ? named(value) : value);

// clip is the beginning of text that is longer than most: no character is parted.
export const clip = (text: string, most: number) => (text.length > most ? text.slice(0, most).replace(/[\uD800-\uDBFF]$/, "") + "…" : text);

// plainly is text for one line of a list: cut where it is long, which shows.
export const plainly = (text: string, most = 300) => named(clip(text, most));
