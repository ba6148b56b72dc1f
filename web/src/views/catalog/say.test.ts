import * as assert from "node:assert/strict";
import test from "node:test";
import { effects, firstLine, paint, place, relation, standing, type Whole } from "./say";

test("what the catalog's words mean", () => {
  assert.deepEqual([standing("active", true), standing("active", false), standing("quarantined", true), standing("shadowed", true), standing("", true), standing("active", true, "api.rest")].map((s) => s.word + "/" + s.tone),
    ["available/good", "unavailable/warn", "quarantined/bad", "shadowed/warn", "unknown/warn", "no runner/"]);
  assert.deepEqual([relation("DEPENDS_ON"), relation("DEPENDS_ON", true), relation("DEPENDS_ON", false), relation("OF_TOMORROW")], ["Depends on", "Needs", "Needed by", "of tomorrow"]);
  assert.deepEqual([place(undefined), place({ source: "s" }), place({ path: "a.md", line: 3 }), place({ path: "a.json", pointer: "/x" })], ["", "s", "a.md:3", "a.json#/x"]);
  assert.equal(paint("of tomorrow"), "--soft");
  assert.equal(paint("constructor"), "--soft");
});

test("a call's effects are told, and what is not known is not", () => {
  const of = (e: Partial<Whole>) => effects(e as Whole).join("; ");
  assert.equal(of({}), "");
  assert.equal(of({ hasSideEffects: true }), "has side effects");
  assert.equal(of({ effects: { readOnly: true, destructive: false, openWorld: false } }), "read-only; stays on this machine");
  assert.equal(of({ effects: { readOnly: false, destructive: true, idempotent: true, openWorld: true } }), "has side effects; may delete or overwrite data; idempotent; reaches external systems");
});

test("a row has one line, however long the text", () => {
  assert.equal(firstLine("  a\n\n b\tc "), "a b c");
  assert.ok(firstLine("x".repeat(1e6)).length === 241);
});
