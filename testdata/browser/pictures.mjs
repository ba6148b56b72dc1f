// Pictures of the main views for the documentation: a conversation, what waits,
// what was done and what it saved.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { story, say, answered, visit, control, world, workspace, out } from "./ken.mjs";

const files = {
  "berths.csv": "berth,ship,from,to\n1,Aurora,06:00,09:30\n2,Borealis,06:15,11:00\n2,Meridian,10:30,14:00\n",
  "harbour.md": "# Harbour\n\nThe harbour opens at six. Two ships never share a berth.\n",
  "plan.go": "package harbour\n\nfunc clash(a, b Stay) bool {\n\treturn a.Berth == b.Berth && a.From < b.To && b.From < a.To\n}\n",
};
const read = (path) => ({ tool: "tool:read_file", intent: "READ_FILE", arguments: { path } });
const write = (path, content) => ({ tool: "tool:write_to_file", intent: "WRITE_FILE", arguments: { path, content } });
const berths = "List the stays of tomorrow: do two ships share a berth?";
const messages = {
  [berths]: {
    calls: [{ tool: "tool:list_stays", intent: "EXECUTE", arguments: { query: "tomorrow" } }],
    text: "**Yes, one pair does:** two stays at berth 2 overlap.\n\n| berth | ship | from | to |\n|---|---|---|---|\n| 2 | Borealis | 06:15 | 11:00 |\n| 2 | Meridian | **10:30** | 14:00 |\n\nA check that finds such pairs:\n\n```go\nfunc clash(a, b Stay) bool {\n\treturn a.Berth == b.Berth && a.From < b.To && b.From < a.To\n}\n```",
  },
  "Write a plan without the overlap": { calls: [write("plan.csv", files["berths.csv"].replace("10:30", "11:00"))], text: "It is in `plan.csv`: *Meridian* now comes at 11:00, and no two stays overlap." },
  "Summarise the rules of the harbour": { calls: [read("harbour.md")], text: "It opens at six, and two ships never share a berth." },
  "What is in plan.go?": { calls: [read("plan.go")], text: "One function, `clash`: it says whether two stays need the same berth at the same time." },
  "Read the password file": { calls: [read("../../etc/passwd")], text: "I may not: it lies outside of the workspace." },
  "Write the minutes of today": { calls: [write("minutes.md", "# Minutes\n\n- berth 2: Meridian at 11:00\n")], text: "The minutes are in `minutes.md`." },
  "Which tool lists open invoices?": { calls: [{ tool: "tool:list_invoices", intent: "EXECUTE", arguments: { query: "open" } }], text: "`list_invoices`, and two invoices are open." },
};
for (const [name, text] of Object.entries(files)) writeFileSync(join(workspace, name), text);
writeFileSync(join(world, "script.json"), JSON.stringify(messages));

// Tools of a harbour that can be called: what all their schemas would take is
// what insights compare with.
for (const verb of ["list", "find", "create", "update", "close"]) {
  for (const noun of ["invoices", "stays", "ships", "crews", "cranes", "tugs", "pilots", "permits", "cargo", "customs_papers", "weather_reports", "tides", "incidents", "contracts", "tickets", "shifts"]) {
    const name = verb + "_" + noun;
    const dir = join(world, "home", ".ken", "capabilities", name);
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, "CAPABILITY.yaml"), JSON.stringify({
      kind: "tool", name, description: `${verb[0].toUpperCase() + verb.slice(1)} the ${noun.replaceAll("_", " ")} of the harbour, by words, by day or by state`, category: "harbour", hasSideEffects: false, permissions: ["exec", "filesystem.read"],
      inputSchema: { type: "object", required: ["query"], properties: { query: { type: "string", description: "Words that must stand in it" }, day: { type: "string", description: "The day, as in 2026-11-16", format: "date" }, state: { type: "string", enum: ["open", "closed", "late"], description: "Only those in this state" }, limit: { type: "integer", minimum: 1, maximum: 500, description: "How many at most" } } },
      run: name === "list_stays" ? { runner: "exec.cat", argv: ["cat", "--", "berths.csv"], workspace: "read" } : { runner: "exec.echo", argv: ["echo", "--", "{query}"] },
    }));
  }
}
await control("/stop");
await control("/start");

async function take(page, name) {
  await page.mouse.move(0, 0); // nothing is pointed at
  await page.screenshot({ path: join(out, name + ".png"), animations: "disabled" });
}
const settled = (page) => page.waitForFunction(() => document.querySelector("main h1") && !document.querySelector("[aria-busy=true]") && !/Checking…|Searching…/.test(document.querySelector("main").innerText));

await story(async ({ page }) => {
  // Prices are for a person to say.
  await page.evaluate(async () => {
    const answer = await fetch("/api/v1/prices/lab/scripted", { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ input: 3, output: 15, cachedRead: 0.3, cacheWrite: 3.75 }) });
    if (!answer.ok) throw new Error("price: " + (await answer.text()));
  });
  const allow = (name) => page.getByRole("group", { name: /\? tool:/ }).getByRole("button", { name, exact: true });
  // settle waits for an answer, and agrees to what is asked meanwhile.
  const settle = async (page) => {
    await allow("Allow once").or(page.getByRole("button", { name: "Send", exact: true })).first().waitFor();
    if (await allow("Allow once").isVisible()) await allow("Allow once").click();
    await answered(page);
  };
  // What happened before.
  let turn = 0;
  for (const message of ["Summarise the rules of the harbour", "What is in plan.go?", "Which tool lists open invoices?", "Read the password file"]) {
    await say(page, message, ++turn);
    await settle(page);
  }
  await say(page, "Write the minutes of today", ++turn);
  await allow("Allow once").click();
  await answered(page);

  // The conversation that is shown.
  await visit(page, "/chat");
  await say(page, berths, 1);
  await settle(page);
  await page.getByRole("region", { name: "Prompt cache" }).waitFor();
  const chat = new URL(page.url()).pathname;
  await take(page, "chat");
  await page.getByRole("complementary", { name: "Inspector" }).screenshot({ path: join(out, "inspector.png"), animations: "disabled" });
  await page.emulateMedia({ colorScheme: "dark" });
  await take(page, "chat-dark");
  await page.emulateMedia({ colorScheme: "light" });

  // A call that waits, in the list of all of them.
  await say(page, "Write a plan without the overlap", 2);
  await allow("Allow once").waitFor();
  await visit(page, "/approvals");
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  await take(page, "approvals");
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByText("Nothing is waiting for approval").waitFor();

  await visit(page, "/catalog?q=weather+forecast");
  const hits = page.getByRole("list", { name: "Capabilities" }).getByRole("link");
  await hits.first().click();
  await page.getByRole("region", { name: "Detail" }).getByRole("heading", { level: 2 }).waitFor();
  await settled(page);
  // The home of this world has a long name that says nothing.
  await page.evaluate((home) => { for (const e of document.querySelectorAll("dd")) for (const n of e.childNodes) if (n.nodeType === 3) n.data = n.data.replace(home, "~"); }, join(world, "home"));
  await take(page, "catalog");

  await visit(page, "/catalog?tab=graph");
  await page.waitForFunction(() => document.querySelector("[data-drawn]"));
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await take(page, "graph");

  await visit(page, "/playground?q=create+an+issue+about+the+failing+login");
  await page.getByRole("list", { name: "Ranking" }).getByRole("listitem").first().waitFor();
  await page.getByRole("group", { name: "How many" }).getByRole("slider", { name: "Briefs" }).fill("3");
  await page.getByText("no longer shown").first().waitFor();
  await take(page, "playground");

  await visit(page, "/trail");
  await page.getByRole("link", { name: /refused\s+tool:read_file/ }).waitFor();
  await take(page, "trail");

  await visit(page, "/insights");
  await page.getByText("tokens saved", { exact: true }).waitFor();
  await page.waitForFunction(() => document.querySelector("canvas"));
  await settled(page);
  await take(page, "insights");

  await page.setViewportSize({ width: 390, height: 844 });
  await visit(page, chat);
  await page.getByRole("article", { name: "Turn 2" }).getByText("It is in").waitFor();
  await take(page, "chat-phone");

  // With KEN_EVERY_VIEW, every view at three widths, light and dark, for someone to look at.
  if (!process.env.KEN_EVERY_VIEW) return;
  const views = { start: "/", chat, catalog: "/catalog", graph: "/catalog?tab=graph", problems: "/catalog?tab=problems", reviews: "/catalog?tab=reviews", detail: "/catalog/skill%3Acode-review", playground: "/playground?q=review%20a%20change", approvals: "/approvals", jobs: "/jobs", trail: "/trail", insights: "/insights", settings: "/settings", servers: "/settings?topic=MCP+servers", clients: "/settings/clients", secrets: "/settings/secrets", doctor: "/settings/doctor", about: "/settings/about" };
  mkdirSync(join(out, "every"), { recursive: true });
  for (const [name, view] of Object.entries(views)) {
    for (const width of [360, 768, 1440]) {
      await page.setViewportSize({ width, height: width < 700 ? 780 : 900 });
      await page.emulateMedia({ colorScheme: "light" });
      await visit(page, view);
      await settled(page);
      await take(page, `every/${name}-${width}-light`);
      await page.emulateMedia({ colorScheme: "dark" });
      await take(page, `every/${name}-${width}-dark`);
    }
  }
}, { viewport: { width: 1280, height: 800 } });
