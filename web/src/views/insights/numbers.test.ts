import * as assert from "node:assert/strict";
import test from "node:test";
import type { Bill, Insights } from "../../lib/types";
import { figures, hits, quantile, share, small } from "./numbers";

const bill = (more: Partial<Bill> = {}): Bill => ({ turns: 1, requests: 1, shownTokens: 100, allTokens: 1000, savedTokens: 900, cachedRead: 60, cachedWrite: 20, plain: 20, output: 5, selections: 4, used: 1, calls: 1, failed: 0, refused: 0, ...more });
const insights = (more: Partial<Insights> = {}): Insights => ({
  since: "2026-11-10T00:00:00Z", until: "2026-11-13T12:00:00Z", tokenizer: "t", prices: [], totals: bill(), days: [{ day: "2026-11-11", ...bill() }],
  latency: { bounds: [], find: [], embed: [], call: { boundsMS: [], counts: [] }, turn: { boundsMS: [], counts: [] } }, refusals: [], capabilities: [], notes: [], ...more,
});

test("parts of nothing are not known", () => {
  assert.deepEqual([share(1, 4), share(1, 0), hits(bill()), hits(bill({ cachedRead: 0, cachedWrite: 0, plain: 0 }))], [0.25, null, 0.6, null]);
});

test("days on which nothing happened are gaps", () => {
  const f = figures(insights());
  assert.deepEqual(f.tokens.chart.days, ["2026-11-10", "2026-11-11", "2026-11-12", "2026-11-13"]);
  assert.deepEqual(f.tokens.chart.lines[1]!.values, [null, 100, null, null]);
  assert.deepEqual(f.accuracy.chart.lines[0]!.values, [null, 0.25, null, null]);
  assert.equal(f.money, null);
  assert.ok(f.tokens.summary.includes("90\u00a0% saved"), f.tokens.summary);
  const more = figures(insights({ totals: bill({ shownTokens: 1500, savedTokens: -500 }) })).tokens.summary;
  assert.ok(more.endsWith(": 50\u00a0% more."), more);
  assert.ok(figures(insights({ days: [{ day: "2026-11-11", ...bill({ paid: 1 }) }] })).money !== null);
  assert.equal(figures(insights({ days: [], totals: bill({ selections: 0, used: 0 }) })).accuracy.summary, "Nothing was shown.");
  assert.ok(figures(insights({ since: "0001-01-01T00:00:00Z" })).tokens.chart.days.length <= 400);
});

test("a chart begins with its first day, and has a week at least", () => {
  const month = { since: "2026-10-14T00:00:00Z", until: "2026-11-13T12:00:00Z" };
  const days = (...of: string[]) => figures(insights({ ...month, days: of.map((day) => ({ day, ...bill() })) })).tokens.chart.days;
  assert.deepEqual([days("2026-11-13")[0], days("2026-11-13").length], ["2026-11-07", 7]);
  assert.equal(days("2026-11-01", "2026-11-13")[0], "2026-11-01");
  assert.equal(days()[0], "2026-11-07");
});

test("a catalog that is too small is told in words", () => {
  assert.equal(small(bill()), null);
  assert.equal(small(bill({ requests: 0, savedTokens: -1 })), null);
  const said = small(bill({ requests: 5, shownTokens: 14_225, allTokens: 8725, savedTokens: -5500 }))!.replaceAll("\u00a0", " ");
  for (const part of ["by 5,500 tokens", "1,745 tokens per request", "more than about 2,845."]) assert.ok(said.includes(part), said);
});

test("quantiles are bounds of the histogram", () => {
  assert.equal(quantile([1, 2], [0, 0, 0], 0.5), null);
  assert.deepEqual(quantile([10, 20, 30], [5, 4, 1, 0], 0.5), { at: 10, over: false });
  assert.deepEqual(quantile([10, 20, 30], [5, 4, 1, 0], 0.9), { at: 20, over: false });
  assert.deepEqual(quantile([10, 20], [0, 0, 3], 0.5), { at: 20, over: true });
});
