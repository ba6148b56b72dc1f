import * as assert from "node:assert/strict";
import test from "node:test";
import { folded } from "./fold";

const same = (n: number) => Array.from({ length: n }, (_, i) => " line " + i);

test("a short change is whole", () => {
  assert.deepEqual(folded("-a\n+b\n"), [{ lines: ["-a", "+b"], hidden: false }]);
});

test("of a long change only unchanged lines are folded, and nothing is lost", () => {
  const lines = ["@@ -1,60 +1,60 @@", ...same(30), "-old", "+new", ...same(25), "+last"];
  const parts = folded(lines.join("\n"));
  assert.deepEqual(parts.flatMap((p) => p.lines), lines);
  assert.deepEqual(parts.map((p) => p.hidden), [false, true, false, true, false]);
  for (const p of parts) if (p.hidden) assert.ok(p.lines.every((l) => l.startsWith(" ")));
  assert.equal(parts[1]!.lines.length, 24);
});

test("a long change without unchanged lines is whole", () => {
  const lines = Array.from({ length: 90 }, (_, i) => "+line " + i);
  assert.deepEqual(folded(lines.join("\n")), [{ lines, hidden: false }]);
});
