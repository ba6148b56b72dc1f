import * as assert from "node:assert/strict";
import test from "node:test";
import { Random } from "../../testing/random";
import { compare } from "./words";

const show = (old: string, now: string) => compare(old, now).map((r) => ({ same: "", added: "+", removed: "-" })[r.how] + r.text).join("|");

test("what changed is told word by word", () => {
  assert.equal(show("reads a file", "reads a file"), "reads a file");
  assert.equal(show("reads a file", "writes a file"), "-reads|+writes| a file");
  assert.equal(show("repeats a text word for word", "repeats a text and keeps it"), "repeats a text |-word for word|+and keeps it");
  assert.equal(show("", "new"), "+new");
  assert.equal(show("gone", ""), "-gone");
  assert.deepEqual(compare("", ""), []);
});

test("both texts can be had back from what changed", () => {
  const words = ["read", "write", "a", "file", " ", "  ", "\n", ".", "é", "世界", "\u202e"];
  for (let seed = 1; seed <= 300; seed++) {
    const random = new Random(seed);
    const text = () => Array.from({ length: random.below(30) }, () => random.of(words)).join("");
    const old = text(), now = text(), runs = compare(old, now);
    const without = (how: string) => runs.filter((r) => r.how !== how).map((r) => r.text).join("");
    assert.equal(without("added"), old, "seed " + seed);
    assert.equal(without("removed"), now, "seed " + seed);
    assert.ok(runs.every((r, i) => r.text && r.how !== runs[i - 1]?.how), `seed ${seed}: runs are empty or could be one`);
  }
});

test("long texts that differ are shown as a whole, quickly", () => {
  const old = "a b ".repeat(20_000), now = "c d ".repeat(20_000), began = performance.now();
  assert.deepEqual(compare(old, now).filter((r) => r.how !== "same").map((r) => r.how), ["removed", "added"]);
  assert.ok(performance.now() - began < 2000);
});
