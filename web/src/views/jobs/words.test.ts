import * as assert from "node:assert/strict";
import test from "node:test";
import type { Job } from "../../lib/types";
import { ended, mayRetry, meaning, part, states, tone } from "./words";

const job = (more: Partial<Job>): Job => ({ id: "1", url: "", events: "", state: "queued", target: "tool:x", session: "s", priority: 0, attempt: 0, added: "", ...more });

test("what can be done with a job follows from its state", () => {
  assert.deepEqual(states.filter((state) => ended(job({ state }))), ["done", "failed", "cancelled", "unknown"]);
  assert.deepEqual(states.filter((state) => mayRetry(job({ state }))), ["failed", "cancelled", "unknown"]);
  assert.equal(mayRetry(job({ state: "cancelled", schedule: "every 1h" })), false);
  assert.equal(tone("failed"), "bad");
  assert.equal(meaning(job({ state: "scheduled", schedule: "every 1h" })), "It runs again and again: every 1h.");
});

test("progress is a part of a whole that is known", () => {
  assert.equal(part(job({})), undefined);
  assert.equal(part(job({ progress: { done: 3, at: "" } })), undefined);
  assert.equal(part(job({ progress: { done: 1, total: 4, at: "" } })), 0.25);
  assert.equal(part(job({ progress: { done: 9, total: 4, at: "" } })), 1);
});
