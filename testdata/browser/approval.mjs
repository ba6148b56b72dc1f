// A call that writes waits for a person, who sees exactly what will run: allowed
// by a key, denied, and settled from the list of all that waits.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { story, check, control, say, answered, accessible, url, workspace } from "./ken.mjs";

const file = (name) => join(workspace, name);

await story(async ({ page, context }) => {
  // A key that comes in the moment in which the person gets to the question was meant
  // for something else.
  await page.evaluate(() => document.addEventListener("focusin", (e) => {
    if (e.target.hasAttribute("data-question")) e.target.dispatchEvent(new KeyboardEvent("keydown", { key: "y", bubbles: true }));
  }));
  const first = await say(page, "please write out.txt", 1);
  const card = first.getByRole("group", { name: /^Change out\.txt\? tool:write_to_file/ });
  await card.waitFor();
  await card.focus();
  const came = await page.evaluate(() => performance.now());
  const shown = await card.innerText();
  for (const exact of ["tool:write_to_file", "out.txt", "written by a model"]) check(shown.includes(exact), "the question does not show " + exact + ":\n" + shown);
  await accessible(page, "a question");
  check(!existsSync(file("out.txt")), "the file is there before anybody agreed");

  // Then y allows it, once.
  await page.waitForFunction((came) => performance.now() > came + 1000, came);
  await card.waitFor();
  await page.keyboard.press("y");
  await first.getByText("Allowed", { exact: false }).first().waitFor();
  await first.getByRole("region", { name: "Call tool:write_to_file: done" }).waitFor();
  await answered(page);
  check(readFileSync(file("out.txt"), "utf8") === "written by a model\n", "out.txt = " + readFileSync(file("out.txt"), "utf8"));

  // Denied: nothing is written, and the model is told.
  const second = await say(page, "please write denied.txt", 2);
  await second.getByRole("group", { name: /^Change .*\? tool:/s }).getByRole("button", { name: "Deny", exact: true }).click();
  await second.getByRole("region", { name: /^Call tool:write_to_file: (refused|failed)$/ }).waitFor();
  await second.getByText("Not allowed").waitFor();
  await answered(page);
  check(!existsSync(file("denied.txt")), "what was denied was written");
  check((await control("/heard")).includes("denied request"), "the model was told: " + (await control("/heard")));

  // Settled on another page, from the list of what waits; the chat goes on by itself.
  const third = await say(page, "please write elsewhere.txt", 3);
  await third.getByRole("group", { name: /^Change .*\? tool:/s }).waitFor();
  const other = await context.newPage();
  await other.goto(url + "/approvals");
  await other.getByRole("link", { name: /Approvals\s*1 waiting/ }).waitFor();
  const ticket = other.getByRole("article", { name: "tool:write_to_file" });
  await ticket.getByLabel("What will run").getByText("elsewhere.txt").first().waitFor();
  await accessible(other, "approvals");
  await ticket.getByRole("button", { name: "Allow once" }).click();
  await other.getByText("Nothing is waiting for approval").waitFor();
  const lately = other.getByRole("region", { name: "Recently answered" });
  await lately.getByText("allowed once").first().waitFor();
  await lately.getByText("denied", { exact: true }).waitFor();
  await page.bringToFront();
  await third.getByRole("region", { name: "Call tool:write_to_file: done" }).waitFor();
  await answered(page);
  check(existsSync(file("elsewhere.txt")), "what was allowed in the list was not written");
});
