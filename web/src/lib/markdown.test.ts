import * as assert from "node:assert/strict";
import test from "node:test";
import { Random } from "../testing/random";
import { Reader } from "./lexing";
import { plain, safe } from "./markdown";

test("only addresses that lead somewhere are links", () => {
  for (const [href, want] of [
    ["https://example.org/a?b#c", "https://example.org/a?b#c"], ["http://example.org", "http://example.org/"], ["mailto:a@example.org", "mailto:a@example.org"],
    ["javascript:alert(1)", undefined], ["JaVaScRiPt:alert(1)", undefined], ["java\nscript:alert(1)", undefined], ["\u0001javascript:alert(1)", undefined],
    ["data:text/html,<script>", undefined], ["vbscript:x", undefined], ["file:///etc/passwd", undefined], ["blob:https://x/y", undefined],
    ["/api/v1/me", undefined], ["//example.org", undefined], ["#here", undefined], ["", undefined],
  ] as const) assert.equal(safe(href), want, `safe(${JSON.stringify(href)}) = ${safe(href)}`);
});

test("names of characters become them, and only known ones", () => {
  for (const [text, want] of [
    ["a &amp; b", "a & b"], ["&lt;b&gt;", "<b>"], ["&#65;&#x42;", "AB"], ["&constructor;", "&constructor;"], ["&nope;", "&nope;"], ["&#0;", "&#0;"], ["&#xD800;", "&#xD800;"], ["&#x110000;", "&#x110000;"], ["AT&T", "AT&T"],
  ] as const) assert.equal(plain(text), want);
});

const parts = ["# A heading\n\n", "Some *soft* and **strong** words\nover lines.\n\n", "- one\n- two\n  - three\n\n", "1. first\n2. second\n\n", "```go\nfunc a() {}\n\n// more\n```\n\n", "| a | b |\n|---|---|\n| 1 | 2 |\n\n", "> said\n> by another\n\n", "---\n\n", "\tcode by a tab\n\n", "<b>no markup</b>\n\n", "- [x] done\n- [ ] to do\n\n", "[a link](https://example.org) &amp; more\n\n"];

test("a text that comes bit by bit is read as the whole text is", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = new Random(seed);
    const text = Array.from({ length: 1 + random.below(8) }, () => random.of(parts)).join("");
    const reader = new Reader();
    for (let at = 0; at < text.length; at += 1 + random.below(24)) reader.grow(text.slice(0, at));
    const raw = (list: { type: string; raw: string }[] | null) => (list ?? []).filter((t) => t.type !== "space").map((t) => [t.type, t.raw.trimEnd()]);
    const whole = raw(new Reader().read(text));
    assert.deepEqual(raw(reader.grow(text)), whole, "seed " + seed + ", while it grew");
    assert.deepEqual(raw(reader.read(text)), whole, "seed " + seed + ", at its end");
  }
});

test("what stands keeps its tokens while more comes", () => {
  const reader = new Reader();
  const before = reader.grow("# One\n\nTwo\n\nThree")!;
  const after = reader.grow("# One\n\nTwo\n\nThree and more\n\nFour")!;
  assert.ok(before.length >= 3 && after[0] === before[0], "the first block was read again");
  assert.ok(reader.read("# One\n\nTwo\n\nThree and more\n\nFour")![0] === before[0], "the end read all of it again");
});

test("what is too long or too deep is given back as it is", () => {
  assert.equal(new Reader().read("a ".repeat(100_001)), null);
  const deep = new Reader().read("> ".repeat(5000) + "x");
  assert.ok(deep === null || deep.length > 0);
});
