// Parts of a text to look at. Ranges are bytes of UTF-8, as the server counts.
export interface Mark { from: number; to: number; why: string }
export interface Slice { text: string; why?: string }

// slices takes a text apart at its marks. A mark that does not lie in the text, or
// overlaps the one before, is left out; nothing of the text is lost.
export function slices(text: string, marks: Mark[] = []): Slice[] {
  const bytes = new TextEncoder().encode(text);
  const piece = (from: number, to: number) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(from, to));
  const out: Slice[] = [];
  let end = 0;
  for (const m of marks) {
    if (m.from < end || m.to <= m.from || m.to > bytes.length) continue;
    if (m.from > end) out.push({ text: piece(end, m.from) });
    out.push({ text: piece(m.from, m.to), why: m.why });
    end = m.to;
  }
  if (end < bytes.length) out.push({ text: piece(end, bytes.length) });
  return out;
}
