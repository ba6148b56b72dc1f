import * as assert from "node:assert/strict";
import test from "node:test";
import type { Setting } from "../../lib/types";
import { bounds, fieldOf, lines, listed, standard } from "./form";

const of = (form: Setting["form"]): Setting => ({ key: "k", value: "", origin: "default", writable: true, form });

test("the schema says which field a setting gets", () => {
  assert.equal(fieldOf(of({ enum: ["stop", "skip"] })), "choice");
  assert.equal(fieldOf(of({ type: "boolean" })), "switch");
  assert.equal(fieldOf(of({ type: "integer", minimum: 1 })), "number");
  assert.equal(fieldOf(of({ type: ["number", "null"] })), "number");
  assert.equal(fieldOf(of({ type: ["array", "null"], items: { type: "string" } })), "list");
  assert.equal(fieldOf(of({ type: ["integer", "string"] })), "text"); // 64MiB
  assert.equal(fieldOf(of({ type: "string" })), "text");
  assert.equal(fieldOf(of(undefined)), "text");
});

test("defaults and bounds are words", () => {
  assert.equal(standard(of({ default: 50 })), "50");
  assert.equal(standard(of({ default: false })), "false");
  assert.equal(standard(of({ default: "" })), "empty");
  assert.equal(standard(of({ default: [] })), "empty");
  assert.equal(bounds(of({ minimum: 0, maximum: 1 })), "0 to 1");
  assert.equal(bounds(of({ minimum: 5 })), "at least 5");
  assert.equal(bounds(of({})), "");
});

test("a list is one entry in a line", () => {
  assert.equal(lines('["a", "b c"]'), "a\nb c");
  assert.equal(lines("[a, 'b c']"), "a\nb c");
  assert.equal(lines("[]"), "");
  assert.equal(listed(" a \n\nb c"), '["a","b c"]');
});
