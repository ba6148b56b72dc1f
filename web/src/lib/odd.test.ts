import * as assert from "node:assert/strict";
import test from "node:test";
import { named, pieces, plainly } from "./odd";

test("every character that does not show is named, and nothing is lost", () => {
  const hidden = [0x0, 0x7, 0xb, 0x1b, 0x7f, 0x9b, 0xad, 0x34f, 0x61c, 0x115f, 0x17b4, 0x180b, 0x180e, 0x200b, 0x200e, 0x202e, 0x2028, 0x2066, 0x3164, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0x1d173, 0xe0001, 0xe0041, 0xe01ef];
  for (const code of hidden) {
    const c = String.fromCodePoint(code);
    const got = pieces("a" + c + "b");
    const name = "U+" + code.toString(16).toUpperCase().padStart(4, "0");
    assert.deepEqual(got, [{ text: "a" }, { text: c, name }, { text: "b" }]);
    assert.equal(named(c), "⟨" + name + "⟩");
  }
  assert.equal(named("\ud800"), "⟨U+D800⟩"); // half of a character
  for (const text of ["", "rm -rf ./build\n\ttab", "Grüße, 世界 👩", "a\u202eb\u202cc"]) assert.equal(pieces(text).map((p) => p.text).join(""), text);
  assert.equal(named("plain\nand\ttabs"), "plain\nand\ttabs");
});

test("a line of a list is cut where it is long", () => {
  assert.equal(plainly("abc", 3), "abc");
  assert.equal(plainly("abcd", 3), "abc…");
});
