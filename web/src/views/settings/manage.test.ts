import * as assert from "node:assert/strict";
import test from "node:test";
import { blank, counted, goneText, request, words } from "./manage";

test("a command line is split at spaces, and quotes hold together", () => {
  assert.deepEqual(words(`node server.js "my folder" 'a b' x`), ["node", "server.js", "my folder", "a b", "x"]);
  assert.deepEqual(words("  "), []);
});

test("only what was filled in is sent", () => {
  assert.deepEqual(request({ ...blank(), from: " npm:x ", hosts: "a.example\n\n b.example" }), { from: "npm:x", hosts: ["a.example", "b.example"] });
  assert.deepEqual(request({ ...blank(), how: "command", command: "uvx thing --flag", from: "left over", args: "left" }), { command: ["uvx", "thing", "--flag"] });
});

test("rules are counted in words", () => {
  assert.equal(counted([{ decision: "allow" }, { decision: "ask" }, { decision: "ask" }]), "1 without asking, 2 after asking you");
});

test("what goes with a server and what stays is told", () => {
  assert.equal(goneText("crm", { secrets: [] }), "crm is removed.");
  assert.ok(/Its login is removed too: the token and the client registration\./.test(goneText("crm", { secrets: [], logged_out: true })));
  assert.ok(/login stays, because .* still defined: \/h\/mcp\.json:3\./.test(goneText("crm", { secrets: [], login_used: "/h/mcp.json:3" })));
  assert.ok(/These secrets stay: A\. The secret B stays, because mcp:x needs it\./.test(goneText("crm", { secrets: ["A"], shared: [{ secret: "B", by: "mcp:x" }] })));
});
