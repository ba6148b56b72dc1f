// The first hour with nothing but the page. Seeing it without a key is demo.mjs,
// and choosing a model choose-model.mjs. Here: connecting Claude Code's servers,
// letting a tool write a file after seeing the diff, finding out why a tool is not
// offered, a setting as a form, and what insights and the audit log tell of it.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accessible, answered, api, check, fits, say, story, until, url, visit, workspace, world } from "./ken.mjs";

const home = join(world, "home");
writeFileSync(join(home, ".claude.json"), JSON.stringify({ mcpServers: { notes: { type: "stdio", command: "no-such-program", args: [] } } }));
mkdirSync(join(home, ".ken", "capabilities"), { recursive: true });
writeFileSync(join(home, ".ken", "capabilities", "shop.yaml"), `openapi: 3.0.0
info: {title: Shop, version: "1"}
servers: [{url: "http://127.0.0.1:1"}]
components: {securitySchemes: {token: {type: http, scheme: bearer}}}
paths: {/items: {post: {operationId: addItem, summary: Add an item to the shop, security: [{token: []}], responses: {"200": {description: ok}}}}}
`);
const file = join(home, ".ken", "ken.yaml");
const good = readFileSync(file, "utf8");

await story(async ({ page }) => {
  // Claude Code's servers: what was found, what to do, and how to undo it.
  writeFileSync(file, good.replace("model: lab/scripted", ""));
  await page.goto(url + "/chat");
  await page.getByText(/Claude Code/).first().waitFor();
  await page.getByRole("link", { name: "Choose a model" }).waitFor();
  const before = readFileSync(join(home, ".claude.json"), "utf8");
  const client = page.getByRole("group", { name: "Claude Code" });
  await client.getByRole("button", { name: "Show the plan for Claude Code" }).click();
  await client.getByText(/notes moves behind Ken/).waitFor();
  await page.getByText("ken disconnect claude").first().waitFor();
  await accessible(page, "the plan of a client on the first page");
  await fits(page, "the plan of a client on the first page");
  await client.getByRole("button", { name: "Connect Claude Code" }).click();
  await client.getByText("Restart Claude Code to use it.").waitFor();
  check(!readFileSync(join(home, ".claude.json"), "utf8").includes("no-such-program"), "the server did not move");
  await client.getByRole("button", { name: "Disconnect…" }).click();
  await client.getByRole("button", { name: "Disconnect Claude Code" }).click();
  await client.getByRole("button", { name: "Show the plan for Claude Code" }).waitFor();
  check(readFileSync(join(home, ".claude.json"), "utf8") === before, "the client's file is not as it was");
  writeFileSync(file, good);

  // A file is written after its diff was seen.
  await page.goto(url + "/chat");
  const turn = await say(page, "please write hours.txt", 1);
  const card = turn.getByRole("group", { name: /^Change hours\.txt\?/ });
  await card.getByText("+written by a model").waitFor();
  check(!(await card.getByText("Exact arguments").locator("xpath=..").evaluate((d) => d.open)), "the arguments are not folded");
  await card.getByText("What a wider answer would cover").click();
  await card.getByText(/in every session/).first().waitFor();
  await accessible(page, "a question with its diff");
  await card.getByRole("button", { name: /Allow once/ }).click();
  await answered(page);
  check(readFileSync(join(workspace, "hours.txt"), "utf8") === "written by a model\n", "the file was not written");

  // Why a tool is not offered: the catalog names what is missing, and the fix.
  await until("the API is in the catalog", async () => (await api("/why/tool:addItem")).status === 200);
  await visit(page, "/catalog/" + encodeURIComponent("tool:addItem"));
  await page.getByText(/ken secret set SHOP_TOKEN/).first().waitFor();
  await accessible(page, "why a tool is unavailable");
  await page.getByRole("link", { name: "store SHOP_TOKEN here" }).click();
  check((await page.getByLabel("Name", { exact: true }).inputValue()) === "SHOP_TOKEN", "the name of the missing secret is not filled in");

  // A setting is a form: a number has bounds, what is wrong is told while typing.
  await visit(page, "/settings?topic=Budget");
  await page.getByRole("button", { name: "Change chat.steps" }).click();
  const field = page.getByLabel("chat.steps", { exact: true });
  await page.getByText("1 to 10000").waitFor();
  await field.fill("many");
  await page.getByText(/whole number|integer|number/).first().waitFor();
  check(await page.getByRole("button", { name: "Save" }).isDisabled(), "a wrong value can be saved");
  await field.fill("60");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("chat.steps changed").waitFor();
  await visit(page, "/settings?q=discovery.profile");
  await page.getByRole("button", { name: "Change discovery.profile" }).click();
  check((await page.getByLabel("discovery.profile", { exact: true }).locator("option").allInnerTexts()).includes("lean"), "a choice does not list its values");
  await accessible(page, "a setting as a form");
  await fits(page, "a setting as a form");

  // What happened is told: the audit log can be exported, insights name what to fix.
  await visit(page, "/trail");
  await page.getByText("tool:write_to_file").first().waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\n").map((l) => JSON.parse(l));
  check(lines.some((r) => r.event === "approval_settled"), "the export lacks the answer");
  await visit(page, "/insights");
  await page.getByRole("heading", { name: "Things to fix" }).waitFor();
  await page.getByRole("heading", { name: "Conversations, by cost" }).waitFor();
  await accessible(page, "insights");
  check((await page.getByRole("link", { name: "Docs" }).getAttribute("href")) === "/docs/", "there is no way to the documentation");
});
