// Every view, empty and with something in it, light, dark and on a phone: it says
// what it is, axe finds nothing serious, and nothing must be scrolled sideways.
import { story, check, say, answered, accessible, fits, visit } from "./ken.mjs";

const views = ["/chat", "/catalog", "/catalog?tab=graph", "/catalog?tab=problems", "/catalog?tab=reviews", "/catalog/skill%3Acode-review", "/playground?q=review%20a%20change", "/approvals", "/jobs", "/trail", "/insights", "/settings", "/settings?topic=MCP+servers", "/settings/clients", "/settings/secrets", "/settings/doctor", "/settings/about"];

// settled waits until a view has drawn what it fetched.
async function settled(page) {
  await page.waitForLoadState("load");
  await page.waitForFunction(() => !/Checking…|Searching…|Reading older/.test(document.querySelector("main")?.innerText ?? "") && !document.querySelector("[aria-busy=true]") && document.querySelector("main h1"));
}

// all looks at a view as it is on a wide light page, in the dark, and on a phone.
async function all(page, view) {
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: "light" });
  await visit(page, view);
  await settled(page);
  check((await page.getByRole("heading", { level: 1 }).count()) === 1, view + ": there is not one first heading");
  await accessible(page, view);
  await fits(page, view);

  // The dark has other colours, and no other elements.
  await page.emulateMedia({ colorScheme: "dark" });
  check(await page.evaluate(() => Number(getComputedStyle(document.body).backgroundColor.match(/\d+/)[0]) < 90), view + ": it is not dark");
  await accessible(page, view + " in the dark", "color-contrast");

  await page.setViewportSize({ width: 390, height: 844 });
  await settled(page);
  await fits(page, view + " on a phone");
  await accessible(page, view + " on a phone");
}

await story(async ({ page }) => {
  // Nothing has happened yet, and each view says what to do about that.
  for (const [view, words] of [["/chat", "What should Ken do?"], ["/approvals", "Nothing is waiting for approval"], ["/jobs", "There are no jobs"], ["/trail", "No records in this period"], ["/insights", "No data yet"], ["/playground", "What would the model see?"], ["/catalog?tab=reviews", ""]]) {
    await visit(page, view);
    if (words) await page.getByRole("heading", { name: words }).waitFor();
    await settled(page);
    await accessible(page, view + ", empty");
    await fits(page, view + ", empty");
  }

  // Something happens.
  await visit(page, "/chat");
  await say(page, "please read notes.txt", 1);
  await answered(page);
  await say(page, "please write later.txt", 2);
  await page.getByRole("group", { name: /^Change .*\? tool:/s }).waitFor();

  views[0] = new URL(page.url()).pathname; // the session with a question that waits
  for (const view of views) await all(page, view);

  await visit(page, "/insights");
  for (const words of ["tokens saved", "from the cache", "Finding", "Calls"]) await page.getByText(words, { exact: true }).first().waitFor();
  check((await page.getByText(/would have been cheaper/).count()) === 0, "so small a catalog costs more than sending every schema");
  await page.getByRole("button", { name: "Set a price" }).click();
  check(await page.getByRole("textbox", { name: "Input of lab/scripted" }).evaluate((e) => e === document.activeElement), "the price of the model in use is not asked for");
  await visit(page, "/settings");
  await page.getByRole("searchbox", { name: "Filter settings" }).fill("policy.profile");
  await page.getByText("personal").first().waitFor();
  await visit(page, "/settings/doctor");
  await page.getByRole("tabpanel").getByRole("listitem").first().waitFor();
  check((await page.getByRole("tabpanel").getByRole("listitem").count()) > 4, "the doctor lists too few checks");

  // What waits would hold the server up.
  await visit(page, views[0]);
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await answered(page);
});
