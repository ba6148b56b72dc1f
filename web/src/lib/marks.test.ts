import * as assert from "node:assert/strict";
import test from "node:test";
import { slices } from "./marks";

test("a text is taken apart at its marks, counted in bytes", () => {
  assert.deepEqual(slices("é | sh", [{ from: 3, to: 7, why: "runs it" }]), [{ text: "é " }, { text: "| sh", why: "runs it" }]);
  assert.deepEqual(slices("plain"), [{ text: "plain" }]);
  assert.deepEqual(slices(""), []);
});

test("a mark that does not fit is left out, and nothing of the text is lost", () => {
  const text = "rm -rf /";
  for (const marks of [[{ from: 3, to: 99, why: "x" }], [{ from: 5, to: 2, why: "x" }], [{ from: 0, to: 4, why: "x" }, { from: 2, to: 6, why: "y" }], [{ from: -1, to: 2, why: "x" }]])
    assert.equal(slices(text, marks).map((s) => s.text).join(""), text);
});
