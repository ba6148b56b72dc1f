// Half of an answer is there when the person stops it. The session goes on: with
// another message, with the same once more, and from before a turn.
import { story, check, control, say, answered, accessible, until } from "./ken.mjs";

await story(async ({ page }) => {
  const first = await say(page, "please hold", 1);
  await first.getByText("The first half is here.").waitFor();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await page.keyboard.press("Escape");
  await answered(page);
  await first.getByText("stopped", { exact: true }).waitFor();
  check(!(await first.innerText()).includes("second half"), "what was stopped went on");
  await accessible(page, "a stopped turn");

  const second = await say(page, "please greet me", 2);
  await second.getByText("You said: greet me").waitFor();
  await answered(page);

  // Retry takes the answer back and asks again.
  const asked = Number(await control("/asked"));
  await second.getByRole("button", { name: "Retry" }).click();
  await until("the model is asked again", async () => Number(await control("/asked")) > asked);
  await answered(page);
  await page.getByText("You said: greet me").waitFor();
  check(Number(await control("/asked")) === asked + 1, "the model was asked " + (await control("/asked")) + " times, want " + (asked + 1));
  check((await page.getByText("You said: greet me").count()) === 1, "a retried answer stands there twice");

  // Rewind takes turns back and gives what was said to the field.
  await page.getByRole("button", { name: "Rewind to before turn 1" }).click();
  const sure = page.getByRole("dialog", { name: "Rewind to before turn 1?" });
  await sure.waitFor();
  await accessible(page, "the question before a rewind");
  await sure.getByRole("button", { name: "Rewind" }).click();
  await page.waitForFunction(() => document.querySelector("textarea")?.value === "please hold");
  check((await page.getByRole("article").count()) === 0, "turns are left after a rewind to before the first");
  check(await page.getByRole("textbox", { name: "Message" }).evaluate((e) => e === document.activeElement), "the field has no focus after a rewind");

  // What stands in the field is sent as it is.
  await page.keyboard.press("Enter");
  const again = page.getByRole("article", { name: /^Turn \d$/ });
  await again.getByText("The first half is here.").waitFor();
  await control("/go");
  await again.getByText("This was the second half.").waitFor();
  await answered(page);
});
