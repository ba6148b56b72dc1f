import * as assert from "node:assert/strict";
import test from "node:test";
import { fixes } from "./fixes";

const row = (id: string, more: object) => ({ id, shown: 0, used: 0, failed: 0, refused: 0, searched: 0, tokens: 0, ...more });

test("tools that fail, are slow or are never used are picked, the worst first", () => {
  const got = fixes([
    row("fine", { shown: 40, used: 30, failed: 1, p50MS: 20 }), row("breaks", { used: 6, failed: 4 }), row("once", { failed: 1 }),
    row("slow", { used: 3, p50MS: 2500 }), row("slower", { used: 3, p50MS: 9000 }),
    row("ignored", { shown: 12 }), row("seldom", { shown: 3 }), row("denied", { shown: 12, refused: 2 }),
  ]);
  const ids = (list: { id: string }[]) => list.map((r) => r.id);
  assert.deepEqual([ids(got.failing), ids(got.slow), ids(got.unused)], [["breaks"], ["slower", "slow"], ["ignored"]]);
});
