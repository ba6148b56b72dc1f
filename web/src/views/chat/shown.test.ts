import * as assert from "node:assert/strict";
import test from "node:test";
import { counted, shownOf } from "./shown";

const piece = (id: string, score: number, tokens: number, why: string[]) => ({ id, score, tokens, text: id + " " + tokens, why });

test("a capability that is shown twice stands there once", () => {
  const list = shownOf({ fulls: [piece("a", 0.9, 300, ["named"])], cards: [piece("c", 0.2, 50, [])], briefs: [piece("a", 0.8, 20, ["named", "near"]), piece("b", 0.5, 18, [])] });
  assert.deepEqual(list.map((s) => [s.id, s.score, s.why.join(), s.as.map((x) => x.tier + x.tokens).join()]), [["a", 0.9, "named,near", "full300,brief20"], ["c", 0.2, "", "cards50"], ["b", 0.5, "", "brief18"]]);
  assert.deepEqual(counted(list), [{ tier: "full", n: 1 }, { tier: "cards", n: 1 }, { tier: "brief", n: 2 }]);
  assert.deepEqual(shownOf({ briefs: [], fulls: [] }), []);
});
