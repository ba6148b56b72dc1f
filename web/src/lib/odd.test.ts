import * as assert from "node:assert/strict";
import test from "node:test";
import { clip, drawn, named, pieces, plainly } from "./odd";

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

// The cases of the terminal: internal/untrusted/render_test.go.
test("characters are named as the terminal names them", () => {
  const flag = "\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}";
  for (const [text, want] of [
    ["https://ok.example/\u202etxt.exe", "https://ok.example/⟨U+202E⟩txt.exe"],
    ["a\u200b\u200b\u200bb", "a⟨U+200B×3⟩b"], ["a\u200b\u200c\u200bb", "a⟨zero-width×3⟩b"], ["a\u200b\u202e\u0007b", "a⟨hidden×3⟩b"],
    ["a\u0000b\u007f\u009b31m", "a⟨U+0000⟩b⟨control×2⟩31m"], ["\u001b[31mred", "⟨U+001B⟩[31mred"], ["safe\rrm", "safe⟨U+000D⟩rm"], ["a\r\nb", "a\r\nb"],
    ["x\u{E0068}\u{E0069}", "x⟨tag×2⟩"], ["co\u00adoperate", "co⟨U+00AD⟩operate"], ["a\ue000\u{100000}", "a⟨private×2⟩"], ["\uffff\ufdd0", "⟨noncharacter×2⟩"],
    ["a" + "\u0301".repeat(12), "a" + "\u0301".repeat(8) + "⟨U+0301×4⟩"],
    // The same characters where nothing needs them.
    ["a\u200cb\u200dc", "a⟨U+200C⟩b⟨U+200D⟩c"], ["می\u200c\u200cخواهم", "می⟨U+200C×2⟩خواهم"], ["text\ufe0f", "text⟨U+FE0F⟩"],
    ["🙂\u{E0159}\u{E0157}", "🙂⟨selector×2⟩"], ["\u{1F3F4}\u{E0067}\u{E0062}", "\u{1F3F4}⟨tag×2⟩"], ["a\u200fb", "a⟨U+200F⟩b"],
  ] as const) {
    assert.equal(named(text), want);
    assert.equal(named(want), want, "named twice");
    assert.equal(pieces(text).map((p) => p.text).join(""), text);
  }
  for (const honest of ["می\u200cخواهم", "क्\u200dष", "👨\u200d👩\u200d👧 👩🏽\u200d💻", "❤\ufe0f\u200d🔥 1\ufe0f\u20e3", flag, "葛\u{E0100}", "שלום\u200f!", "مرحبا بالعالم", "naïve 日本語 Привет"]) {
    assert.equal(named(honest), honest);
    assert.deepEqual(pieces(honest), [{ text: honest }]);
  }
});

test("what is drawn and is no text stays what it is", () => {
  for (const value of [0, 12, true, null, undefined]) assert.equal(drawn(value), value);
  assert.equal(drawn("a\u202eb"), "a⟨U+202E⟩b");
});

test("a line of a list is cut where it is long", () => {
  assert.equal(clip("ab👩c", 3), "ab…"); // and never through a character

  assert.equal(plainly("abc", 3), "abc");
  assert.equal(plainly("abcd", 3), "abc…");
});
