import { count, dollars, percent, tokens } from "../../lib/format";
import type { Bill, Insights } from "../../lib/types";
import type { Chart } from "./chart";

export const share = (a: number, b: number) => (b > 0 ? a / b : null);
export const hits = (b: Bill) => share(b.cachedRead, b.cachedRead + b.cachedWrite + b.plain);

// every gives all days of the period, also those on which nothing happened: a
// gap is drawn as a gap.
function every(i: Insights): { days: string[]; bills: (Bill | null)[] } {
  const known = new Map(i.days.map((d) => [d.day, d]));
  const last = [...known.keys(), i.until.slice(0, 10)].sort().at(-1)!;
  // Before the first day there is nothing to see, but a week is shown.
  const week = new Date(Date.parse(last + "T00:00:00Z") - 6 * 864e5).toISOString().slice(0, 10);
  const since = [i.since.slice(0, 10), ...known.keys()].sort()[0]!;
  const begin = [[...known.keys(), week].sort()[0]!, since].sort()[1]!;
  const days: string[] = [];
  for (let at = begin; at <= last && days.length < 400; at = new Date(Date.parse(at + "T00:00:00Z") + 864e5).toISOString().slice(0, 10)) days.push(at);
  return { days, bills: days.map((d) => known.get(d) ?? null) };
}

// small explains a loss: by how much sending every schema would have been cheaper,
// and from which size on Ken saves tokens. It is null where Ken saved tokens or
// sent nothing. Ken's own agent sends the plain list where that is cheaper, so a
// loss comes from a setting that forbids it or from records of older versions.
export function small(t: Bill): string | null {
  if (t.savedTokens >= 0 || !t.requests) return null;
  return `Sending every schema with each request would have been cheaper, by ${tokens(-t.savedTokens)} tokens in this period. All schemas together are ${tokens(Math.round(t.allTokens / t.requests))} tokens per request; Ken saves tokens once they are more than about ${tokens(Math.round(t.shownTokens / t.requests))}.`;
}

// A Figure is a chart with what it says in a sentence.
export interface Figure { title: string; summary: string; chart: Chart }

export function figures(i: Insights): { tokens: Figure; money: Figure | null; cache: Figure; accuracy: Figure } {
  const { days, bills } = every(i);
  const of = (f: (b: Bill) => number | null | undefined) => bills.map((b) => (b ? (f(b) ?? null) : null));
  const t = i.totals;
  const kept = share(t.savedTokens, t.allTokens);
  const hit = hits(t), right = share(t.used, t.selections);
  return {
    tokens: {
      title: "Tokens for capabilities, per day",
      summary: `${tokens(t.shownTokens)} tokens sent. All schemas of the same catalog would have been ${tokens(t.allTokens)}${kept === null ? "" : kept < 0 ? `: ${percent(-kept)} more` : `: ${percent(kept)} saved`}.`,
      chart: { days, format: tokens, between: "good", lines: [{ name: "all schemas", tone: "map", kind: "line", values: of((b) => b.allTokens) }, { name: "sent", tone: "brief", kind: "area", values: of((b) => b.shownTokens) }] },
    },
    money: bills.some((b) => b?.paid !== undefined) ? {
      title: "Money, per day",
      summary: `${dollars(t.paid ?? 0)} paid${t.allPaid === undefined ? "" : `; all schemas, with a cache that never misses, would have cost ${dollars(t.allPaid)}`}.`,
      chart: { days, format: dollars, between: "good", lines: [{ name: "with all schemas", tone: "map", kind: "line", values: of((b) => b.allPaid) }, { name: "paid", tone: "cards", kind: "area", values: of((b) => b.paid) }] },
    } : null,
    cache: {
      title: "Prompt cache, tokens per day",
      summary: hit === null ? "No requests were made." : `${percent(hit)} of the input came from the cache: ${tokens(t.cachedRead)} read, ${tokens(t.cachedWrite)} written, ${tokens(t.plain)} not cached.`,
      chart: { days, format: tokens, stacked: true, lines: [{ name: "read", tone: "brief", kind: "bars", values: of((b) => b.cachedRead) }, { name: "written", tone: "cards", kind: "bars", values: of((b) => b.cachedWrite) }, { name: "not cached", tone: "map", kind: "bars", values: of((b) => b.plain) }] },
    },
    accuracy: {
      title: "Shown and then used, per day",
      summary: right === null ? "Nothing was shown." : `${count(t.used)} of ${count(t.selections)} capabilities shown in a turn were called in the same turn: ${percent(right)}.`,
      chart: { days, format: percent, lines: [{ name: "used", tone: "full", kind: "area", values: of((b) => share(b.used, b.selections)) }] },
    },
  };
}

// quantile reads a histogram: the bound below which that part of all lies, or
// the last bound where it lies over all of them.
export function quantile(bounds: number[], counts: number[], q: number): { at: number; over: boolean } | null {
  const all = counts.reduce((a, b) => a + b, 0);
  if (!all) return null;
  let sum = 0;
  for (let i = 0; i < counts.length; i++) {
    sum += counts[i]!;
    if (sum >= q * all) return { at: bounds[Math.min(i, bounds.length - 1)] ?? 0, over: i >= bounds.length };
  }
  return null;
}
