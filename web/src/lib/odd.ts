// Characters that a person cannot see, or that change the order in which text is
// read: a call could look like another one. They are named instead.
const odd = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180B-\u180F\u200B-\u200F\u2028-\u202E\u2060-\u206F\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF9-\uFFFB\uD800-\uDFFF\u{1D173}-\u{1D17A}\u{E0000}-\u{E0FFF}]/gu;

export type Piece = { text: string; name?: string };

// pieces takes text apart where a character has to be named.
export function pieces(text: string): Piece[] {
  const all: Piece[] = [];
  let from = 0;
  for (const m of text.matchAll(odd)) {
    if (m.index > from) all.push({ text: text.slice(from, m.index) });
    all.push({ text: m[0], name: "U+" + m[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0") });
    from = m.index + m[0].length;
  }
  if (from < text.length) all.push({ text: text.slice(from) });
  return all;
}

// named is text with the names of such characters in it, for where no element
// can stand.
export const named = (text: string) => pieces(text).map((p) => (p.name ? `⟨${p.name}⟩` : p.text)).join("");

// plainly is text for one line of a list: cut where it is long, which shows.
export const plainly = (text: string, most = 300) => named(text.length > most ? text.slice(0, most) + "…" : text);
