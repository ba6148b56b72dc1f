// The connection is cut, and each view is visited: it says that Ken does not
// answer, and offers to try again. When Ken is back, each view is complete by
// itself. On the way each view shows that it loads.
import { Cable, accessible, answered, check, say, story } from "./ken.mjs";

const cable = new Cable();
const through = await cable.plug();
const views = [
  ["/catalog", "Catalog"], ["/catalog?tab=graph", "Catalog"], ["/catalog?tab=problems", "Catalog"], ["/catalog?tab=reviews", "Catalog"], ["/catalog/tool%3Aread_file", "Catalog"],
  ["/playground?q=read%20a%20file", "Playground"], ["/approvals", "Approvals"], ["/approvals/none", "Approval"], ["/jobs", "Jobs"], ["/trail", "Audit log"], ["/insights", "Insights"],
  ["/settings", "Settings"], ["/settings?topic=MCP+servers", "Settings"], ["/settings?topic=Extensions", "Settings"], ["/settings?topic=Sources", "Settings"], ["/settings/clients", "Settings"], ["/settings/secrets", "Settings"], ["/settings/doctor", "Settings"], ["/settings/about", "Settings"],
];

// walk goes to a view as a link does: without the server.
const walk = (page, path) => page.evaluate((to) => { const a = document.createElement("a"); a.href = to; document.body.append(a); a.click(); a.remove(); }, path);

await story(async ({ page, expectErrors }) => {
  expectErrors(/^console: Failed to load resource/);
  await say(page, "please read notes.txt", 1);
  await answered(page);
  const chat = new URL(page.url()).pathname;
  for (const [path] of views) { // each is fetched once, as in a page that was used for a while
    await walk(page, path);
    await page.getByRole("heading", { level: 1 }).waitFor();
  }
  await walk(page, chat);
  await page.getByRole("article", { name: "Turn 1", exact: true }).waitFor();

  cable.pull();
  await page.getByText("offline", { exact: true }).waitFor();
  await page.getByText(/Ken does not answer since/).waitFor();
  await page.getByRole("article", { name: "Turn 1", exact: true }).waitFor(); // what was there stays
  const field = page.getByRole("textbox", { name: "Message" });
  await field.fill("a draft");
  await accessible(page, "the chat without Ken");

  for (const [path, title] of views) {
    await walk(page, path);
    await page.getByRole("heading", { level: 1, name: title }).waitFor();
    await page.getByText(/Ken does not answer since/).waitFor();
    if (path === "/settings/about") continue; // it needs nothing more
    // The view says what is wrong, and never stays empty.
    await page.locator("main").getByText(/Ken is not responding|could not be loaded/).first().waitFor();
    await accessible(page, path + " without Ken");
  }

  // Back again, the view that is open is complete without a hand.
  for (const [path, title] of views) {
    await walk(page, path);
    await page.getByRole("heading", { level: 1, name: title }).waitFor();
    cable.restore();
    await page.getByText("offline", { exact: true }).waitFor({ state: "hidden" });
    await page.waitForFunction(() => !/Ken is not responding/.test(document.querySelector("main")?.innerText ?? ""));
    check((await page.locator("main").innerText()).trim().length > 20, path + " is empty after the connection came back");
    if (path !== views.at(-1)[0]) {
      cable.pull();
      await page.getByText("offline", { exact: true }).waitFor();
    }
  }
  await walk(page, chat);
  check((await page.getByRole("textbox", { name: "Message" }).inputValue()) === "a draft", "the draft is gone");
}, { through });
