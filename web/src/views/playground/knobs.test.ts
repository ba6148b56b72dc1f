import * as assert from "node:assert/strict";
import test from "node:test";
import { groups, unknown, yaml } from "./knobs";

test("what was changed is written as ken.yaml has it", () => {
  assert.equal(yaml({}), "");
  assert.equal(yaml({ tier1TopK: 3, maxTokens: 10, useGraphReranking: false, other: 'a "word"' }), 'discovery:\n  tier1TopK: 3\n  useGraphReranking: false\n  other: "a \\"word\\""\ncapabilities:\n  maxTokens: 10\n');
  assert.equal(yaml({ learnedWeight: 2 }), "# learnedWeight: 2 (can be tried here only)\n");
});

test("knobs have names of their own and a range", () => {
  const all = groups.flatMap((g) => g.knobs);
  assert.equal(new Set(all.map((k) => k.key)).size, all.length);
  for (const k of all) assert.ok(k.min < k.max && k.step > 0 && k.name && k.about, k.key);
});

test("a setting that the page was not told about can be moved too", () => {
  for (const [value, max, step] of [[0.3, 1, 0.01], [0, 10, 1], [7, 28, 1], [2.5, 10, 0.01], [true, 1, 1], ["word", 1, 1]] as const) {
    const k = unknown("x", value);
    assert.deepEqual([k.max, k.step], [max, step], "unknown of " + value);
  }
});
