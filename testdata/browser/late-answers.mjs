// An answer that comes late overwrites nothing newer: not what was answered since,
// nor what was heard since, nor what another catalog gives.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { story, check, api, answered, say, until, url, visit, world } from "./ken.mjs";

// late lets the next request of a kind reach the server at once, and keeps its
// answer from the page until it is let go.
async function late(page, kind) {
  let come, open;
  const came = new Promise((done) => (come = done)), gate = new Promise((done) => (open = done));
  let first = true;
  const match = (to) => to.pathname.startsWith("/api/v1/") && kind.test(to.href.slice((url + "/api/v1").length));
  await page.route(match, async (route) => {
    if (!first) return route.fallback();
    first = false;
    const answer = await route.fetch();
    come(route.request());
    await gate;
    await route.fulfill({ response: answer });
  });
  return {
    came,
    // go gives the page the answer, and time to draw what comes of it.
    async go() {
      const request = await came;
      open();
      await request.response().then((answer) => answer.finished());
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    },
  };
}

// skill writes a file into the catalog.
function skill(name, text) {
  const folder = join(world, "home", ".ken", "skills", name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "SKILL.md"), text);
}
const waiting = async () => (await api("/approvals?state=pending")).value.tickets;

await story(async ({ page, context }) => {
  const second = await context.newPage();

  // A list that was asked for before an answer was given.
  await say(page, "please write late.txt", 1);
  await visit(second, "/approvals");
  const card = second.getByRole("article", { name: "tool:write_to_file" });
  await card.waitFor();
  const list = await late(second, /^\/approvals\?state=pending/);
  await second.evaluate(() => dispatchEvent(new Event("focus")));
  await list.came;
  await card.getByRole("button", { name: "Allow once" }).click();
  await second.getByText("Nothing is waiting for approval").waitFor();
  await list.go();
  check(!(await card.isVisible()), "a call that was answered waits again");

  // A call that ends before its story is there.
  await answered(page);
  await say(page, "please write later.txt", 2);
  await second.getByRole("link", { name: /Approvals\s*1 waiting/ }).waitFor();
  const [asked] = (await api("/audit?event=capability_asked")).value.records;
  await visit(second, "/trail");
  const tale = await late(second, /^\/audit\/./);
  await second.locator(`a[href^="/trail/${encodeURIComponent(asked.id)}"]`).first().click();
  await tale.came;
  const [ticket] = await waiting();
  await api("/approvals/" + ticket.id, { effect: "grant", scope: "once" });
  await until("the call ends", async () => (await api("/audit/" + encodeURIComponent(asked.id))).value.records.some((r) => r.event === "capability_executed"));
  await answered(page);
  await say(page, "please write latest.txt", 3); // who hears of this has heard of the end
  await second.getByRole("link", { name: /Approvals\s*1 waiting/ }).waitFor();
  await tale.go();
  await second.getByRole("list", { name: "What happened" }).getByText("Ended").waitFor();

  // The word that an answer was taken comes after the list without the question.
  await visit(second, "/approvals");
  const word = await late(second, /^\/approvals\/./);
  await card.getByRole("button", { name: "Deny", exact: true }).click();
  await second.getByText("Nothing is waiting for approval").waitFor();
  await word.go();
  check((await second.getByText("answered elsewhere").count()) === 0, "an answer that was given here is said to be from elsewhere");

  // A record that comes while the trail is read.
  await visit(second, "/trail");
  const pages = await late(second, /^\/audit\?/);
  await second.getByRole("combobox", { name: "Events" }).selectOption({ index: 1 });
  await pages.came;
  check((await api("/invoke", { target: "tool:list_files", arguments: {}, intent: "READ_FILE" })).status === 200, "list_files was not called");
  const row = second.locator("main").getByRole("link", { name: /list_files/ }).first();
  await row.waitFor();
  await pages.go();
  check(await row.isVisible(), "a record that came meanwhile is gone");

  // What is typed in one view is not put into the address of the next.
  await second.getByRole("searchbox", { name: /^Find in command/ }).fill("note");
  await second.evaluate(() => {
    document.querySelector('nav a[href="/settings"]').click();
    return new Promise((done) => setTimeout(done, 300)); // after what was to come in 200
  });
  check(second.url() === url + "/settings", "the next view is at " + second.url());

  // A ranking of the catalog before.
  await visit(second, "/playground");
  const play = await late(second, /^\/play$/);
  await second.getByRole("textbox", { name: "Message" }).fill("moor a zeppelin at its mast");
  await play.came;
  const fresh = second.waitForRequest(/\/api\/v1\/me$/); // the page hears of another catalog
  skill("zeppelin", "---\nname: zeppelin\ndescription: Moors a zeppelin at its mast.\n---\n# Zeppelins\n");
  await fresh;
  await play.go();
  await second.getByRole("list", { name: "Ranking" }).getByRole("link", { name: "zeppelin" }).waitFor();

  // Problems of the catalog before.
  await visit(second, "/catalog?tab=problems");
  const problems = second.getByRole("region", { name: "Problems" });
  const lint = await late(second, /^\/lint$/);
  skill("first", "There is nothing that names it.");
  await lint.came;
  skill("second", "There is nothing that names it.");
  await problems.getByText(join("second", "SKILL.md")).first().waitFor();
  await lint.go();
  check(await problems.getByText(join("second", "SKILL.md")).first().isVisible(), "a newer problem is gone");
});
