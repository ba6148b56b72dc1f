// Without a model: the first page offers what is on this machine, a message opens
// the same choice and stays a draft. Settings are listed by topic.
import { createServer } from "node:http";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accessible, check, fits, story, url, world } from "./ken.mjs";

const models = createServer((_, w) => {
  w.writeHead(200, { "Content-Type": "application/json" });
  w.end(JSON.stringify({ data: [{ id: "small" }] }));
});
await new Promise((done) => models.listen(0, "127.0.0.1", done));
const at = "http://127.0.0.1:" + models.address().port;
const file = join(world, "home", ".ken", "ken.yaml");
const good = readFileSync(file, "utf8");

await story(async ({ page }) => {
  writeFileSync(file, good.replace("model: lab/scripted", "").replace("providers:", `providers:\n  near: {wire: openai-chat, url: "${at}/v1"}`));
  await page.goto(url + "/chat");
  await page.getByRole("heading", { name: "Welcome to Ken" }).waitFor();
  check(await page.getByRole("link", { name: "See the demo" }).first().isVisible(), "there is no way to the demo");
  await page.getByRole("button", { name: "Use near/small" }).waitFor();
  await accessible(page, "the first page");
  await fits(page, "the first page");

  // A message without a model stays a draft, and asks for one.
  const field = page.getByRole("textbox", { name: "Message" });
  await field.fill("what day is it?");
  await field.press("Enter");
  const dialog = page.getByRole("dialog", { name: "A message needs a model" });
  await dialog.getByRole("button", { name: "Use near/small" }).click();
  await dialog.waitFor({ state: "hidden" });
  check((await field.inputValue()) === "what day is it?", "the message is gone");
  await page.getByTitle("the model that answers").getByText("near/small").waitFor();

  // Settings by topic.
  await page.goto(url + "/settings");
  await page.getByRole("button", { name: "Safety" }).click();
  await page.getByText("policy.profile", { exact: true }).waitFor();
  check((await page.getByText("serve.addr", { exact: true }).count()) === 0, "Safety has a setting of the server");
  await accessible(page, "settings by topic");
});
models.close();
