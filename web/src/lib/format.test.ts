import * as assert from "node:assert/strict";
import test from "node:test";
import { ago, bytes, clock, count, dayOf, hour, moment, dollars, many, micros, millis, percent, tokens, took, when } from "./format";

test("numbers read as people write them", () => {
  const cases: [string, string][] = [
    [count(1234567), "1,234,567"], [many(1, "turn"), "1 turn"], [many(0, "turn"), "0 turns"], [many(2, "category", "categories"), "2 categories"], [many(1200, "call"), "1,200 calls"],
    [tokens(9999), "9,999"], [tokens(10_000), "10.0 k"], [tokens(123_456), "123 k"], [tokens(2_500_000), "2.50 M"],
    [dollars(0), "$0"], [dollars(0.00123), "$0.0012"], [dollars(12.345), "$12.35"],
    [percent(0.0512), "5.1 %"], [percent(0.5), "50 %"], [percent(1), "100 %"],
    [bytes(1), "1 byte"], [bytes(1023), "1,023 bytes"], [bytes(1536), "1.5 KiB"], [bytes(3 << 20), "3.0 MiB"],
    [micros(12.4), "12 µs"], [micros(1500), "1.5 ms"], [micros(2.5e6), "2.5 s"], [millis(0.5), "500 µs"],
    [took(0), "0 ms"], [took(999), "999 ms"], [took(1500), "1.5 s"], [took(59_949), "59.9 s"], [took(59_960), "1 min 0 s"], [took(119_700), "2 min 0 s"], [took(125_000), "2 min 5 s"],
  ];
  for (const [got, want] of cases) assert.equal(got.replaceAll("\u00a0", " "), want);
  assert.equal(took(1500), "1.5\u00a0s"); // no line ends there
});

test("times are of today or have their day", () => {
  const now = new Date();
  assert.equal(when(now.toISOString()), hour(now.getTime()));
  assert.ok(when("2020-05-06T07:08:09Z").includes("2020"), "when of another year = " + when("2020-05-06T07:08:09Z"));
  assert.equal(clock("no time at all"), "");
  assert.equal(ago("no time at all"), "");
  assert.ok(/15/.test(dayOf("2026-11-15")), "dayOf = " + dayOf("2026-11-15"));
  const past = (s: number) => ago(new Date(Date.now() - s * 1000).toISOString()).replaceAll("\u00a0", " ");
  for (const [s, want] of [[5, "just now"], [61, "1 min ago"], [7300, "2 h ago"], [200_000, "2 d ago"]] as const) assert.equal(past(s), want);
  assert.equal(ago("2020-05-06T07:08:09Z"), moment("2020-05-06T07:08:09Z"));
});

test("times have twelve hours, or twenty-four, all of them", () => {
  const at = new Date(2026, 10, 16, 15, 4, 5).getTime();
  const twelve = [clock(at), hour(at), moment(at), when(at, at)].map((t) => /PM/i.test(t));
  assert.equal(new Set(twelve).size, 1, [clock(at), hour(at), moment(at), when(at, at)].join(" | "));
});
