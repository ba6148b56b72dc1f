import * as assert from "node:assert/strict";
import test from "node:test";
import { Reader, tooMuch } from "./lexing";
import { tokenize } from "./highlight";

// What holds the parser up for long is drawn as it is; what people write is not.
test("texts that take too long", () => {
  const hostile = ["a_*".repeat(6667), "_a".repeat(50_000), "*a".repeat(50_000), "a".repeat(60_000) + "@", "[".repeat(20_000)];
  for (const text of hostile) {
    const began = performance.now();
    assert.equal(new Reader().read(text), null, text.slice(0, 10));
    assert.ok(performance.now() - began < 500, text.slice(0, 10));
  }
  const usual = "## A heading\n\nA paragraph with `code`, **weight** and [a link](https://example.com).\n\n- one\n- two\n\n```go\nfunc main() { a[i] = b[j] }\n```\n\n";
  assert.equal(tooMuch(usual.repeat(300)), false);
  assert.equal(tooMuch("```js\n" + "a[b] = c * d;\n".repeat(5000) + "```\n"), false);
});

test("colouring has a time, and loses nothing", () => {
  const whole = (list: ReturnType<typeof tokenize>): string => list.map((t) => (typeof t === "string" ? t : whole(t.inside))).join("");
  for (const [text, language] of [["! ".repeat(29_000), "css"], ["$".repeat(30_000), "typescript"], ["<a ".repeat(10_000), "markup"], ["func main() {}\n".repeat(500), "go"]] as const) {
    const began = performance.now();
    assert.equal(whole(tokenize(text, language)), text, language);
    assert.ok(performance.now() - began < 1000, language + " took " + (performance.now() - began));
  }
});
