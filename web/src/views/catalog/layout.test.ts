import * as assert from "node:assert/strict";
import test from "node:test";
import { Random } from "../../testing/random";
import { lay } from "./layout";

test("everything has a place, discs do not overlap, and the picture is always the same", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = new Random(seed);
    const categories = 1 + random.below(40), n = 1 + random.below(800);
    const category = Array.from({ length: n }, () => random.below(categories + 2) - 1); // some are of none
    const degree = Array.from({ length: n }, () => random.below(9));
    const a = lay(category, categories, degree), b = lay(category, categories, degree);
    assert.deepEqual(a, b, "seed " + seed);
    assert.ok(a.x.length === n && a.x.every(Number.isFinite) && a.y.every(Number.isFinite), `seed ${seed}: a place is missing`);
    assert.equal(a.discs.reduce((sum, d) => sum + d.size, 0), n);
    for (const [i, d] of a.discs.entries()) {
      for (const e of a.discs.slice(0, i)) assert.ok(Math.hypot(d.x - e.x, d.y - e.y) >= d.r + e.r - 1e-6, `seed ${seed}: discs ${d.category} and ${e.category} overlap`);
    }
    category.forEach((c, i) => {
      const disc = a.discs.find((d) => d.category === (c >= 0 && c < categories ? c : categories))!;
      assert.ok(Math.hypot(a.x[i]! - disc.x, a.y[i]! - disc.y) <= disc.r + 1e-6, `seed ${seed}: node ${i} is outside of its disc`);
    });
  }
  assert.deepEqual(lay([], 0, []).discs, []);
});
