import type { Insights } from "../../lib/types";
type Row = Insights["capabilities"][number];

const most = 5; // of each kind

// fixes picks the tools that are worth a look, the worst first: those that fail in
// a fifth of their calls or more, that take two seconds or more, and that were
// shown ten times or more and never used.
export function fixes(list: Row[]): { failing: Row[]; slow: Row[]; unused: Row[] } {
  const rate = (r: Row) => r.failed / Math.max(1, r.used + r.failed);
  return {
    failing: list.filter((r) => r.failed >= 2 && rate(r) >= 0.2).sort((a, b) => b.failed - a.failed || a.id.localeCompare(b.id)).slice(0, most),
    slow: list.filter((r) => (r.p50MS ?? 0) >= 2000).sort((a, b) => b.p50MS! - a.p50MS! || a.id.localeCompare(b.id)).slice(0, most),
    unused: list.filter((r) => r.shown >= 10 && !r.used && !r.failed && !r.refused).sort((a, b) => b.shown - a.shown || a.id.localeCompare(b.id)).slice(0, most),
  };
}
