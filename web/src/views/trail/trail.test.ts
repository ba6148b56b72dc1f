import * as assert from "node:assert/strict";
import test from "node:test";
import type { Story, TrailRecord } from "../../lib/types";
import { Random } from "../../testing/random";
import { asked, belongs, moment, passes, read } from "./filter";
import { excerpt, fold, look, what } from "./record";
import { steps } from "./story";
import { bucketsOf, marksOf, told } from "./strip";

const now = Date.now();
const record = (event: string, more: Record<string, unknown> = {}, at = now): TrailRecord => ({ id: event + at + Math.random(), timestamp: new Date(at).toISOString(), level: "info", event, ...more });

test("the address says what is asked for", () => {
  const f = read(new URLSearchParams("event=refusals&target=tool:a&since=all&text=x"));
  assert.deepEqual(asked(f), { event: ["security_violation"], target: "tool:a", session: "", user: "", since: "", until: "", text: "x" });
  assert.equal(read(new URLSearchParams()).since, "7d");
  assert.deepEqual(asked(read(new URLSearchParams("event=of_tomorrow"))).event, ["of_tomorrow"]);
  assert.equal(asked(read(new URLSearchParams("event=chains"))).all, "true");
});

test("times of the address", () => {
  assert.ok(Math.abs(moment("2h")! - (Date.now() - 72e5)) < 1000);
  assert.equal(moment("2026-01-02T03:04:05Z"), Date.parse("2026-01-02T03:04:05Z"));
  assert.equal(moment("all"), undefined);
  assert.equal(moment(""), undefined);
});

test("a record that came by the feed passes as the server would let it", () => {
  const r = record("capability_executed", { target: "tool:a", session_id: "s", user_id: "u", command_line: "LS -l" });
  const of = (q: string) => passes(read(new URLSearchParams(q)), r);
  for (const [q, want] of [["", true], ["event=done", true], ["event=refusals", false], ["target=tool:a", true], ["target=tool:b", false], ["session=s&user=u", true], ["user=x", false], ["text=ls", true], ["text=rm", false], ["since=2030-01-01T00:00:00Z", false], ["until=2020-01-01T00:00:00Z", false]] as const) assert.equal(of(q), want, q);
  assert.equal(belongs(read(new URLSearchParams()), record("audit_chain_opened")), false);
});

test("the records of a call are one row, and the end of it stands for it", () => {
  const rows = fold([record("capability_slow", { effect_id: "e" }), record("capability_executed", { effect_id: "e" }), record("capability_started", { effect_id: "e" }), record("extension_changed")]);
  assert.deepEqual(rows.map((r) => [r.record.event, r.count, r.slow]), [["capability_executed", 3, true], ["extension_changed", 1, false]]);
});

test("looks have a word and a sign, also of what is not known", () => {
  assert.deepEqual([record("approval_settled", { metadata: { notes: { answer: "grant" } } }), record("approval_settled", { metadata: { notes: { answer: "revoke" } } }), record("approval_settled"), record("capability_failed", { status: "CANCELLED" }), record("of_tomorrow"), record("constructor")].map((r) => look(r).word), ["allowed", "revoked", "denied", "cancelled", "of tomorrow", "constructor"]);
  assert.equal(what(record("x")), "Ken itself");
  assert.equal(excerpt(record("x", { command_line: "ls", error: "no" })), "ls — no");
});

test("a story is told in order", () => {
  const story: Story = { records: [
    record("capability_asked", { effect_id: "e", target: "tool:a", decision: "ask", rule: "r", risk: 40, origin: "model" }, now), record("approval_settled", { metadata: { notes: { answer: "grant", scope: "once" } } }, now + 10),
    record("capability_started", { effect_id: "e", isolation: { seccomp: true, missing: ["netns"] } }, now + 20), record("capability_executed", { effect_id: "e", isolation: { seccomp: true, missing: ["netns"] }, duration_ms: 1500, result_bytes: 2048, exit_code: 0 }, now + 30),
  ] };
  const list = steps(story);
  assert.deepEqual(list.map((s) => s.name), ["Asked", "Decided", "Answered", "Started", "Ended"]);
  assert.deepEqual(list[3]!.warn, ["Sandbox limitation: netns"]);
  assert.deepEqual(list[4]!.facts, [["took", "1.5\u00a0s"], ["exit code", "0"], ["result", "2.0\u00a0KiB"]]);
  assert.deepEqual(steps({ records: [] }), []);
});

test("every row of the period is in one column", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = new Random(seed);
    const length = 6e4 * 10 ** (random.next() * 4.5), from = now - length, most = 24 + random.below(60);
    const rows = fold(Array.from({ length: random.below(200) }, () => record(random.of(["capability_executed", "capability_failed", "security_violation", "capability_asked", "x"]), {}, from + random.next() * length * 0.999)));
    const list = bucketsOf(rows, from, now, 0, most);
    assert.equal(list.reduce((n, b) => n + b.total, 0), rows.length, "seed " + seed);
    assert.ok(list.length <= most + 2 && list[0]!.from <= from && list.at(-1)!.to >= now, `seed ${seed}: ${list.length} columns of at most ${most}`);
    assert.ok(list.every((b, i) => !i || b.from === list[i - 1]!.to) && marksOf(list, 6).length <= 6, "seed " + seed);
  }
  assert.equal(told({ done: 2, failed: 0, refused: 1, person: 0, other: 0 }), "2 done, 1 refused");
  assert.deepEqual(marksOf([], 5), []);
});
