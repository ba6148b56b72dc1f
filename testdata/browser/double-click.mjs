// A double click agrees to one call: whatever slides under the mouse is not
// answered before it could be read. And it revokes nothing by itself.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { story, check, api, answered, say, visit, until, workspace, world } from "./ken.mjs";

const file = (name) => existsSync(join(workspace, name));
const waiting = async () => (await api("/approvals?state=pending")).value.tickets.length;

// hasty clicks, where something is answered, on the first button of what then is
// there in its place, as soon as it is drawn. It gives what that button says.
function hasty(page, selector) {
  return page.evaluate((selector) => new Promise((done) => {
    const gone = document.querySelector(selector);
    const watch = new MutationObserver(() => {
      const next = document.querySelector(selector + " button");
      if (gone.isConnected || !next) return;
      watch.disconnect();
      requestAnimationFrame(() => { next.click(); setTimeout(() => done(next.textContent)); });
    });
    watch.observe(document.body, { childList: true, subtree: true });
  }), selector);
}

await story(async ({ page, context }) => {
  const calls = (...names) => ({ calls: names.map((path) => ({ tool: "tool:write_to_file", intent: "WRITE_FILE", arguments: { path, content: "written\n" } })), text: "It is written." });
  writeFileSync(join(world, "script.json"), JSON.stringify({ "write both": calls("one.txt", "two.txt") }));
  const posts = [];
  context.on("request", (r) => { if (r.method() === "POST" && /\/(answers|approvals|revoke)\b/.test(r.url())) posts.push(r.url()); });
  const questions = page.locator("[data-question]");

  // In the chat, where one question comes after another.
  await say(page, "write both", 1);
  const allow = questions.first().getByRole("button", { name: /^Allow once/ });
  await allow.waitFor();
  let second = hasty(page, "[data-question]");
  await allow.dblclick();
  check((await second).startsWith("Allow once"), "what was clicked on says " + (await second));
  await until("the first file is written", () => file("one.txt"));
  check(posts.length === 1 && !file("two.txt"), "a double click agreed to two calls: " + posts.join(", "));
  await allow.click();
  await answered(page);
  check(posts.length === 2 && file("two.txt"), "the second call was not agreed to");

  // In the list of all that waits.
  const other = await context.newPage();
  await visit(other, "/approvals");
  for (const [turn, name] of [[2, "three.txt"], [3, "four.txt"]]) {
    const id = (await api("/sessions", {})).value.id;
    await api(`/sessions/${id}/turns?wait=true`, { text: "please write " + name });
    await until("call " + turn + " waits", async () => (await waiting()) === turn - 1);
  }
  await other.getByRole("article").nth(1).waitFor();
  const first = other.getByRole("article").first();
  second = hasty(other, "article[data-ticket]");
  await first.getByRole("button", { name: "Allow for the session" }).dblclick();
  check((await second).startsWith("Allow once"), "what was clicked on says " + (await second));
  check(posts.length === 3 && (await waiting()) === 1, "a double click agreed to two calls in the list: " + posts.join(", "));
  await first.getByRole("button", { name: "Deny", exact: true }).click();
  await other.getByText("Nothing is waiting for approval").waitFor();

  // What is allowed for good is revoked by two clicks that are two.
  const revoke = other.getByRole("button", { name: /^(Really revoke|Revoke) tool:write_to_file/ });
  await revoke.dblclick();
  await other.getByText("Really revoke?").waitFor();
  check(posts.length === 4, "a double click revoked it: " + posts.at(-1));
  await revoke.click();
  await other.getByText("There are no grants").waitFor();
});
