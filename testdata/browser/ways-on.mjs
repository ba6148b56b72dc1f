// No view leads nowhere: one number for one thing, links to what is there, and a
// way on from where there is nothing.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { story, check, control, say, answered, visit, api, accessible, world } from "./ken.mjs";

mkdirSync(join(world, "home", ".ken", "cards"), { recursive: true });
writeFileSync(join(world, "home", ".ken", "cards", "turned.md"), '---\ncapability_id: turned-card\ndescription: "safe \u202egnihton\u202c tool"\ntriggers: {keywords: [turned]}\n---\nText.\n');
await control("/stop");
await control("/start");

await story(async ({ page, expectErrors }) => {
  // As many as can be looked at, wherever they are counted.
  const { value: found } = await api("/search?q=&limit=1");
  const want = new RegExp(`\\b${found.total} capabilities`);
  await page.getByRole("link", { name: want }).waitFor();
  await visit(page, "/catalog");
  await page.locator("header").getByText(want).waitFor();
  await page.getByRole("status").getByText(want).first().waitFor();
  // The number of what is unavailable leads to exactly that.
  const { value: missing } = await api("/search?q=&available=false&limit=1");
  await page.locator("header").getByRole("link", { name: `${missing.total} unavailable` }).click();
  await page.getByRole("status").getByText(new RegExp(`^${missing.total} capabilit`)).waitFor();
  await page.getByRole("button", { name: "unavailable", exact: true }).click();
  await page.getByRole("status").getByText(want).first().waitFor();
  await visit(page, "/settings/about");
  await page.getByText(String(found.total), { exact: true }).first().waitFor();
  for (const address of ["/catalog?tab=graph", "/catalog/graph"]) { // the second is what people type
    await visit(page, address);
    await page.getByRole("region", { name: "Graph" }).getByText(want).waitFor();
  }

  // What is in quarantine: its text is named, what was noticed reads well, and the
  // doctor's command is whole.
  await visit(page, "/catalog/turned-card");
  const detail = page.getByRole("region", { name: "Detail" });
  await detail.getByText("safe ⟨U+202E⟩gnihton⟨U+202C⟩ tool").first().waitFor();
  await detail.getByText(/bidi-override in the description/).first().waitFor();
  await visit(page, "/settings/doctor");
  await page.getByRole("button", { name: /^ken catalog why turned-card/ }).waitFor();

  // Sessions in which nothing was said are one line, and the others stay in sight.
  await visit(page, "/chat");
  await say(page, "please say something", 1);
  await answered(page);
  for (let i = 0; i < 60; i++) await api("/sessions", {});
  await page.reload();
  const sessions = page.getByRole("list", { name: "Sessions" });
  await sessions.getByRole("link", { name: /please say something/ }).waitFor();
  check((await sessions.getByText("No messages yet").count()) === 0, "sessions without a word are listed");
  await sessions.getByRole("button", { name: "60 empty sessions" }).click();
  check((await sessions.getByText("No messages yet").count()) === 60, "sessions without a word cannot be listed");

  // A turn that waits says what the page does, not what a terminal would.
  const { value: begun } = await api("/sessions", {});
  await api(`/sessions/${begun.id}/turns?wait=true`, { text: "please write later.txt" });
  await visit(page, "/chat/" + begun.id);
  await page.getByText("The turn continues when you answer.").waitFor();
  check((await page.getByText("ken approve list").count()) === 0, "a turn that waits names a command");

  // A call over the API belongs to no session that could be opened.
  await api("/invoke", { target: "tool:write_to_file", arguments: { path: "a.txt", content: "x" }, intent: "WRITE_FILE" });
  await visit(page, "/approvals");
  await page.getByText("from api").waitFor();
  check((await page.getByRole("link", { name: "api", exact: true }).count()) === 0, "a session that is none is a link");
  await page.getByRole("link", { name: begun.id }).waitFor();
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog");
  for (const key of ["y", "n"]) check((await keys.locator("kbd").getByText(key, { exact: true }).count()) > 0, "the keys do not name " + key);

  // Where there is no session, one can be begun.
  expectErrors(/status of 404/);
  await visit(page, "/chat/nope");
  await page.getByText('There is no session "nope".').waitFor();
  check((await page.getByRole("button", { name: "Try again" }).count()) === 0, "what cannot help is offered");
  check(!(await page.getByRole("textbox", { name: "Message" }).isVisible()), "one can write where there is no session");
  await accessible(page, "a session that is not there");
  await page.getByRole("link", { name: "Start a new session" }).click();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
});
