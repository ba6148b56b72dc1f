// What belongs to one conversation stays with it: what was said, what is written,
// what is asked. Answers come late here, when the person is elsewhere already.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { story, check, control, say, answered, visit, until, api, token, workspace } from "./ken.mjs";

const dot = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");

// session makes one in which these were said.
async function session(...texts) {
  const { id } = (await api("/sessions", {})).value;
  for (const text of texts) await api(`/sessions/${id}/turns?wait=true`, { text });
  return id;
}
const said = async (id) => (await api("/sessions/" + id)).value.turns.map((t) => t.said).join(", ");
const listed = async (title) => (await api("/sessions")).value.sessions.some((s) => s.title === title && s.turns === 1);

await story(async ({ page, context, expectErrors }) => {
  const field = page.getByRole("textbox", { name: "Message" });
  const turn = (n) => page.getByRole("article", { name: "Turn " + n, exact: true });
  const at = (path) => page.waitForFunction((path) => location.pathname === path, path);
  const holds = async (text) => check((await field.inputValue()) === text, `the field has ${JSON.stringify(await field.inputValue())}, want ${JSON.stringify(text)}`);
  const send = async (text) => { await field.fill(text); await field.press("Enter"); };
  const posts = []; // what the page asked to be done
  page.on("request", (r) => { if (r.method() === "POST") posts.push(new URL(r.url()).pathname.replace("/api/v1", "") + " " + r.postData()); });

  // late lets the next such request through and holds its answer, or refuses it then.
  async function late(method, path, refused = 0) {
    const held = Promise.withResolvers(), came = Promise.withResolvers(), over = Promise.withResolvers();
    let first = true;
    await page.route(path, async (route) => {
      if (!first || route.request().method() !== method) return route.fallback();
      first = false;
      const response = refused ? { status: refused, contentType: "application/problem+json", body: JSON.stringify({ title: "Busy", status: refused, code: "busy", detail: "There is no room." }) } : { response: await route.fetch() };
      came.resolve();
      await held.promise;
      await route.fulfill(response);
      over.resolve();
    });
    return { came: came.promise, go: async () => { held.resolve(); await over.promise; } };
  }
  // to goes to another conversation, as a click in the list does.
  async function to(path) {
    await page.evaluate((path) => { const a = document.createElement("a"); a.href = path; document.body.append(a); a.click(); a.remove(); }, path);
    await at(path);
  }
  // quiet waits until the page has dealt with all that came: it asks by then, if it would ask at all.
  const quiet = () => page.evaluate(async () => { for (let i = 0; i < 3; i++) { await fetch("/api/v1/me"); await new Promise((done) => requestAnimationFrame(done)); } });

  const A = await session("please say a1", "please say a2"), B = await session("please say b1");

  // The first words of a new session, whose page is late: somebody is in B by then.
  await visit(page, "/chat");
  let answer = await late("GET", /\/sessions\/[^/?]+$/);
  await send("please say this is new");
  await answer.came;
  await to("/chat/" + B);
  await turn(1).getByText("You said: say b1").waitFor();
  await answer.go();
  await until("it is said", () => listed("please say this is new"));
  check(new URL(page.url()).pathname === "/chat/" + B, "the page went to " + page.url());
  check((await said(B)) === "please say b1", "B has " + (await said(B)));

  // The same for who left the view; nobody is led back, and it is said all the same.
  await to("/chat");
  answer = await late("POST", /\/sessions$/);
  await send("please say this was left");
  await answer.came;
  await to("/catalog");
  await page.getByRole("heading", { level: 1, name: "Catalog" }).waitFor();
  await answer.go();
  await until("it is said", () => listed("please say this was left"));
  check(new URL(page.url()).pathname === "/catalog", "the page went to " + page.url());

  // What is refused late goes back to where it was written, with its pictures.
  expectErrors(/status of 503/);
  await visit(page, "/chat/" + B);
  await field.fill("being written in B");
  await to("/chat/" + A);
  await turn(2).waitFor();
  await page.locator("input[type=file]").setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: dot });
  const pictures = page.getByRole("list", { name: "Pictures" });
  await pictures.waitFor();
  answer = await late("POST", /\/turns$/, 503);
  await send("please say no");
  await answer.came;
  await to("/chat/" + B);
  await answer.go();
  await page.getByRole("status").getByText("There is no room.").waitFor();
  await holds("being written in B");
  check((await pictures.count()) === 0 && (await page.getByRole("alert").count()) === 0, "B shows what is A's");
  await to("/chat/" + A);
  await pictures.getByText("dot.png").waitFor();
  await holds("please say no");
  await pictures.getByRole("button", { name: "Remove dot.png" }).click();
  // What was written meanwhile stays.
  answer = await late("POST", /\/turns$/, 503);
  await field.press("Enter");
  await answer.came;
  await field.fill("a second thought");
  await answer.go();
  await page.getByRole("alert").getByText("There is no room.").waitFor();
  await holds("a second thought");
  await field.fill("");

  // A question is about the conversation in which it was put.
  await to("/chat/" + B);
  await page.getByRole("button", { name: "Rewind to before turn 1" }).click();
  const sure = page.getByRole("dialog", { name: "Rewind to before turn 1?" });
  await sure.waitFor();
  await page.goBack();
  await turn(2).waitFor();
  check((await sure.count()) === 0, "the question about B stands over A");
  await page.goForward();
  await page.getByRole("button", { name: "Rewind to before turn 1" }).click();
  answer = await late("POST", /\/rewind$/);
  await sure.getByRole("button", { name: "Rewind" }).click();
  await answer.came;
  await to("/chat/" + A);
  await answer.go();
  await quiet();
  await holds("");
  check((await said(A)) === "please say a1, please say a2", "A has " + (await said(A)));
  await to("/chat/" + B);
  await holds("please say b1");
  await field.press("Enter");
  await turn(2).getByText("You said: say b1").waitFor();
  await answered(page);

  // Going on is for the conversation that was stopped. Twice is once.
  const C = await session();
  await to("/chat/" + C);
  await say(page, "please hold", 1);
  await turn(1).getByText("The first half is here.").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await answered(page);
  answer = await late("POST", /\/turns$/);
  posts.length = 0;
  await page.getByRole("button", { name: "Continue" }).dblclick();
  await answer.came;
  await to("/chat/" + B);
  await turn(2).waitFor();
  await answer.go();
  await quiet();
  check(posts.filter((p) => p.includes("continue")).length === 1, "one double click asked for " + posts.join("; "));
  check(await page.getByRole("button", { name: "Send", exact: true }).isVisible(), "in B something runs");
  await to("/chat/" + C);
  await page.getByRole("button", { name: "Stop" }).click();
  await answered(page);

  // Allowed in one, and gone to another that was stopped: nothing goes on there.
  const D = await session();
  await to("/chat/" + D);
  await say(page, "please write late.txt", 1);
  answer = await late("POST", /\/answers\//);
  await page.getByRole("button", { name: "Allow once" }).click();
  await answer.came;
  await to("/chat/" + C);
  await page.getByRole("button", { name: "Continue" }).waitFor();
  posts.length = 0;
  await answer.go();
  await quiet();
  check(posts.length === 0, "after an answer the page asked for " + posts.join("; "));
  // One that comes after the turn is over asks for nothing either.
  await to("/chat/" + D);
  await answered(page);
  await say(page, "please write later.txt", 2);
  answer = await late("POST", /\/answers\//);
  await page.getByRole("button", { name: "Allow once" }).click();
  await answer.came;
  await answered(page);
  posts.length = 0;
  await answer.go();
  await quiet();
  check(posts.length === 0 && (await page.getByRole("alert").count()) === 0, "after a late answer: " + posts.join("; "));

  // While one is summed up, something can be said in another.
  answer = await late("POST", /\/compact$/);
  await send("/compact ");
  await answer.came;
  await to("/chat/" + B);
  await say(page, "please say b2", 3);
  await answered(page);
  await answer.go();

  // A double click asks once more, and once.
  posts.length = 0;
  const asked = Number(await control("/asked"));
  await page.getByRole("button", { name: "Retry" }).dblclick();
  await until("the model is asked again", async () => Number(await control("/asked")) > asked);
  await answered(page);
  check(posts.length === 1 && (await page.getByRole("alert").count()) === 0, "retry asked for " + posts.join("; "));

  // Of a long result each piece is read once.
  writeFileSync(join(workspace, "big.txt"), Array.from({ length: 30_000 }, (_, i) => "line " + i).join("\n"));
  await to("/chat/" + (await session("please read big.txt")));
  await page.getByRole("button", { name: "Show all" }).first().click();
  await page.getByRole("button", { name: "Load more" }).first().waitFor();
  const pieces = [];
  page.on("request", (r) => { if (r.url().includes("/results/")) pieces.push(r.url()); });
  answer = await late("GET", /\/results\//);
  await page.getByRole("button", { name: "Load more" }).first().dblclick();
  await answer.go();
  await quiet();
  check(new Set(pieces).size === pieces.length, "the same was read twice: " + pieces.join(" "));

  // Earlier turns come once, however often they are asked for.
  const many = await session("please say 1", "please say 2", "please say 3", "please say 4");
  const few = (url) => url.pathname === "/api/v1/sessions/" + many;
  await page.route(few, (route) => { const url = new URL(route.request().url()); url.searchParams.set("limit", "2"); return route.continue({ url: url.href }); });
  await to("/chat/" + many);
  answer = await late("GET", /before=3/);
  const earlier = page.getByRole("button", { name: "Show earlier turns" });
  await earlier.dblclick();
  await turn(1).waitFor();
  await answer.go();
  await quiet();
  check((await page.getByRole("article").count()) === 4, (await page.getByRole("article").count()) + " turns are shown, want 4");
  await page.unroute(few);

  // A list that was asked for before does not bring back what was deleted.
  answer = await late("GET", /\/sessions\?/);
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await answer.came;
  const row = page.getByRole("list", { name: "Sessions" }).getByRole("listitem").filter({ hasText: "please say a1" });
  await row.hover();
  await row.getByRole("button", { name: /^Delete/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
  await row.waitFor({ state: "detached" });
  await answer.go();
  await quiet();
  check((await row.count()) === 0, "a deleted session is listed again");

  // What could not be read because nobody was signed in is there after that.
  expectErrors(/status of (401|429)/);
  await context.clearCookies();
  await to("/chat/" + B);
  const ask = page.getByRole("dialog", { name: "Sign in again" });
  await ask.waitFor();
  await page.getByText("You are no longer signed in").first().waitFor();
  await ask.getByLabel(/^The link/).fill(token);
  await ask.getByRole("button", { name: "Sign in" }).click();
  await turn(2).waitFor();
  await page.getByText("You are no longer signed in").first().waitFor({ state: "detached" });
});
