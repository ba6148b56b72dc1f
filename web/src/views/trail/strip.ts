import { hour, shortDay } from "../../lib/format";
import type { Row, Tone } from "./record";
import { look, tones } from "./record";

// A Bucket is a piece of the period: how many calls of each tone began there.
export interface Bucket { from: number; to: number; counts: Record<Tone, number>; total: number; unread: boolean }

const steps = [6e4, 3e5, 6e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6]; // 1 min … 30 d

// bucketsOf spreads rows over a period in at most `most` pieces, each of a
// length that people count in. What lies before `read` was not read yet.
export function bucketsOf(rows: Row[], from: number, to: number, read: number, most: number): Bucket[] {
  const step = steps.find((s) => (to - from) / s <= most) ?? (to - from) / most;
  const zone = step >= 36e5 ? new Date(from).getTimezoneOffset() * 6e4 : 0; // so that days begin at midnight here
  const first = Math.floor((from - zone) / step) * step + zone;
  const list: Bucket[] = [];
  for (let at = first; at < to; at += step) {
    list.push({ from: at, to: at + step, counts: { done: 0, failed: 0, refused: 0, person: 0, other: 0 }, total: 0, unread: at + step <= read });
  }
  for (const row of rows) {
    const b = list[Math.floor((Date.parse(row.record.timestamp) - first) / step)];
    if (!b) continue;
    b.counts[look(row.record).tone]++;
    b.total++;
  }
  return list;
}

export function span(b: Bucket): string {
  const long = b.to - b.from >= 864e5;
  return long ? shortDay(b.from) + (b.to - b.from > 864e5 ? " to " + shortDay(b.to - 1) : "") : `${shortDay(b.from)}, ${hour(b.from)} to ${hour(b.to)}`;
}

export function told(counts: Record<Tone, number>): string {
  return tones.filter((t) => counts[t.tone]).map((t) => counts[t.tone] + " " + t.name).join(", ") || "none";
}

// marksOf names the places where a day, or an hour, begins: so many at most.
export function marksOf(list: Bucket[], most: number): { at: number; name: string }[] {
  const first = list[0], last = list.at(-1);
  if (!first || !last) return [];
  const long = last.to - first.from > 36 * 36e5;
  const name = long ? shortDay : hour;
  const day = (t: number) => (long ? new Date(t).toDateString() : String(t));
  const begins = list.map((b, i) => ({ b, i })).filter(({ b, i }) => i === 0 || day(b.from) !== day(list[i - 1]!.from));
  // The first day is rarely whole. If its name would run into the next, it has none.
  if (begins.length > 1 && begins[1]!.i / list.length < 1 / most) begins.shift();
  const step = Math.ceil(begins.length / most);
  return begins.filter((_, i) => i % step === 0).map(({ b, i }) => ({ at: (100 * i) / list.length, name: name(b.from) }));
}
