// A sign-in ends while the page is open. The page asks for it again where it is:
// what was being written stays, and goes on to the server after that. All tabs ask
// for it, and what one of them could not show meanwhile is there after that.
import { story, check, api, control, say, answered, accessible, until, open, url, visit, freshLink } from "./ken.mjs";

// follow goes to another view as a link does, also below a dialog.
const follow = (page, to) => page.evaluate((to) => {
  const link = document.createElement("a");
  link.href = to;
  document.body.append(link);
  link.click();
  link.remove();
}, to);

await story(async ({ page, context, expectErrors }) => {
  expectErrors(/^console: Failed to load resource: .*(401|429)/);
  await say(page, "please say hello", 1);
  await answered(page);
  const at = page.url();
  const beside = await context.newPage(); // another tab, which asks too
  await open(beside);

  await context.clearCookies();
  await beside.getByRole("textbox", { name: "Message" }).fill("please say hello");
  await beside.getByRole("textbox", { name: "Message" }).press("Enter");
  const asks = beside.getByRole("dialog", { name: "Sign in again" });
  await asks.waitFor();
  await page.bringToFront();
  const field = page.getByRole("textbox", { name: "Message" });
  await field.fill("please read notes.txt");
  await field.press("Enter");
  const ask = page.getByRole("dialog", { name: "Sign in again" });
  await ask.waitFor();
  await accessible(page, "sign in again");
  check(page.url() === at, "the page went to " + page.url());
  check((await field.inputValue()) === "please read notes.txt", "what was written is gone: " + (await field.inputValue()));

  // A wrong token is told; the printed link is as good as the token in it.
  await ask.getByLabel(/^The link/).fill("wrong");
  await ask.getByRole("button", { name: "Sign in" }).click();
  await ask.getByRole("alert").waitFor();
  await until("the link is let in", async () => {
    if (!(await ask.isVisible())) return true;
    // It may be let in at any of these moments, and the dialog is gone then.
    return ask.getByLabel(/^The link/).fill(freshLink(), { timeout: 15_000 })
      .then(() => ask.getByRole("button", { name: "Sign in" }).click({ timeout: 15_000 }))
      .then(() => ask.waitFor({ state: "hidden", timeout: 15_000 }))
      .then(() => true, () => false);
  });
  await field.press("Enter");
  await page.getByRole("article", { name: "Turn 2", exact: true }).getByText("It says:").waitFor();
  await answered(page);
  await page.getByText("offline", { exact: true }).waitFor({ state: "hidden" });

  // Whoever signed in in one tab is signed in in all.
  await asks.waitFor({ state: "hidden" });
  await beside.getByText("offline", { exact: true }).waitFor({ state: "hidden" });
  check((await beside.getByRole("textbox", { name: "Message" }).inputValue()) === "please say hello", "the other tab lost what was written");
});

// Signed out in one tab, one is asked in all others, whatever they show, and also
// where somebody has tried so many tokens that the server tells nobody why not.
await story(async ({ page, context, expectErrors }) => {
  expectErrors(/^console: Failed to load resource: .*(401|429)/);
  const [call] = (await api("/audit")).value.records;
  const views = ["/catalog/tool:read_file", "/catalog?tab=graph", "/catalog?tab=problems", "/approvals", "/trail/" + encodeURIComponent(call.id), "/playground?q=read"];
  const tabs = [];
  for (const view of views) {
    const tab = await context.newPage();
    await visit(tab, view); // what draws it is there
    await follow(tab, "/settings/about");
    await tab.getByRole("heading", { name: "Server" }).waitFor();
    tabs.push(tab);
  }
  await visit(page, "/settings/about");
  for (let i = 0; i < 30; i++) await fetch(url + "/api/v1/me", { headers: { Authorization: "Bearer wrong" } });
  await page.getByRole("button", { name: "Sign out" }).click();
  for (const tab of tabs) await tab.getByRole("dialog", { name: "Sign in again" }).waitFor();

  // Each goes to a view that cannot be shown now, and shows it when one is signed in.
  for (const [i, tab] of tabs.entries()) {
    await follow(tab, views[i]);
    await tab.locator(".trouble").first().waitFor();
  }
  const ask = tabs[0].getByRole("dialog", { name: "Sign in again" });
  await ask.getByLabel(/^The link/).fill(freshLink());
  await ask.getByRole("button", { name: "Sign in" }).click();
  const shown = async (why) => {
    for (const [i, tab] of tabs.entries()) await until(views[i] + " is shown " + why, async () => (await tab.locator(".trouble").count()) === 0);
  };
  for (const tab of tabs) await tab.getByRole("dialog", { name: "Sign in again" }).waitFor({ state: "hidden" });
  await shown("after signing in");

  // So it is where nobody answered for a while.
  expectErrors(/^console: Failed to load resource: net::ERR_/);
  for (const tab of tabs) await follow(tab, "/settings/about");
  await control("/stop");
  for (const [i, tab] of tabs.entries()) {
    await follow(tab, views[i]);
    await tab.locator(".trouble").first().waitFor();
  }
  await control("/start");
  await shown("after Ken was started again");
});
