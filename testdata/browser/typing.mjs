// Who writes answers nothing: questions come while forty sentences are typed, and
// every letter of them is in the field.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { story, check, api, answered, say, until, workspace, world } from "./ken.mjs";

const files = ["one.txt", "two.txt", "three.txt", "four.txt"];
const there = () => files.filter((name) => existsSync(join(workspace, name)));
const waiting = async () => (await api("/approvals?state=pending")).value.tickets;

await story(async ({ page }) => {
  const calls = files.map((path) => ({ tool: "tool:write_to_file", intent: "WRITE_FILE", arguments: { path, content: "written\n" } }));
  writeFileSync(join(world, "script.json"), JSON.stringify({ "write all": { calls, text: "None is written." } }));
  const answers = [];
  page.on("request", (r) => { if (r.method() === "POST" && /\/(answers|approvals)\b/.test(r.url())) answers.push(r.url()); });

  const field = page.getByRole("textbox", { name: "Message" });
  const card = page.locator("[data-question]").first();
  await say(page, "write all", 1);
  check(await field.evaluate((e) => e === document.activeElement), "the field lost the focus when its message was sent");

  // The letters of all answers, from before the first question on.
  const sentences = ["stop, do not write that", "yes, any name will do", "no, ask me again", "a plan is useful"];
  let written = "";
  for (let i = 0; i < 40; i++) {
    if (i % 10 === 5) { // the next question comes, since somebody else answered this one
      await card.waitFor();
      const [ticket] = await waiting();
      await api("/approvals/" + ticket.id, { effect: "deny", scope: "once" });
      if (i < 35) await until("the next call waits", async () => (await waiting()).some((t) => t.id !== ticket.id));
    }
    await page.keyboard.type(sentences[i % 4] + ". ");
    written += sentences[i % 4] + ". ";
    check((await field.inputValue()) === written, "of " + written + "\nthe field has " + (await field.inputValue()));
  }
  await answered(page);
  check(answers.length === 0 && there().length === 0, "typing answered: " + answers.join(", ") + "; written: " + there().join(", "));

  // In the card, only the letters that hold for once are answers.
  await field.fill("");
  await say(page, "write all", 2);
  await card.waitFor();
  await card.focus();
  const came = await page.evaluate(() => performance.now());
  await page.waitForFunction((came) => performance.now() > came + 1000, came);
  for (const letter of "aspud") await page.keyboard.press(letter);
  check(answers.length === 0, "a letter gave an answer that lasts");
  await page.keyboard.press("n");
  await until("the first question is answered", () => answers.length === 1);

  // Then one writes again: the next question does not take the focus.
  await page.waitForFunction(() => document.activeElement?.hasAttribute("data-first"));
  await until("the next call waits", async () => (await waiting()).length === 1);
  await card.waitFor();
  await page.keyboard.type("yes");
  check((await field.inputValue()) === "yes" && answers.length === 1, "the next question took the letters");
});
