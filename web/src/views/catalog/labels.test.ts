import * as assert from "node:assert/strict";
import test from "node:test";
import { Random } from "../../testing/random";
import { short, write, type Want } from "./labels";

test("no name stands on another or leaves the picture", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = new Random(seed);
    const wants: Want[] = Array.from({ length: 300 }, (_, i) => {
      const x = random.below(900) - 50, y = random.below(700) - 50;
      return { text: "n" + i, width: 20 + random.below(140), height: 12 + random.below(8), places: [[x, y], [x, y + 20], [x + 40, y]] };
    });
    const out = write(wants, 800, 600);
    assert.ok(out.length > 10, `seed ${seed}: ${out.length} names are written`);
    for (const [i, a] of out.entries()) {
      assert.ok(a.x >= 6 + a.want.width / 2 && a.x <= 794 - a.want.width / 2 && a.y >= a.want.height / 2 && a.y <= 600 - a.want.height / 2, `seed ${seed}: ${a.want.text} leaves the picture`);
      for (const b of out.slice(0, i)) assert.ok(Math.abs(a.x - b.x) >= (a.want.width + b.want.width) / 2 || Math.abs(a.y - b.y) >= (a.want.height + b.want.height) / 2, `seed ${seed}: ${a.want.text} stands on ${b.want.text}`);
    }
  }
});

test("the first has its best place, and the next another", () => {
  const want = (text: string): Want => ({ text, width: 40, height: 12, places: [[100, 100], [100, 130]] });
  const out = write([want("a"), want("b"), want("c")], 200, 200);
  assert.deepEqual(out.map((o) => [o.want.text, o.x, o.y]), [["a", 100, 100], ["b", 100, 130]]);
});

test("a name hides no dot, unless it may", () => {
  const want = (over?: boolean): Want => ({ text: "a", width: 40, height: 12, places: [[100, 100], [100, 130]], over });
  assert.deepEqual(write([want()], 200, 200, [{ x: 110, y: 104, r: 5 }]).map((o) => o.y), [130]);
  assert.deepEqual(write([want(true)], 200, 200, [{ x: 110, y: 104, r: 5 }]).map((o) => o.y), [100]);
  assert.deepEqual(write([want()], 200, 200, [{ x: 110, y: 104, r: 5 }, { x: 90, y: 130, r: 5 }]), []);
});

test("a long name keeps its beginning and its end", () => {
  assert.equal(short("get_weather", 20), "get_weather");
  assert.equal(short("hostinger-api-mcp-server", 12), "hosting…rver");
  assert.equal(short("safe\u202eevil", 20), "safe⟨U+202E⟩evil"); // a canvas names nothing by itself
  for (let n = 4; n < 30; n++) assert.ok(short("x".repeat(50), n).length === n, "short to " + n);
});
