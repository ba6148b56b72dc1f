// A sign-in ends while the page is open. The page asks for it again where it is:
// what was being written stays, and goes on to the server after that.
import { story, check, say, answered, accessible, until, open, freshLink } from "./ken.mjs";

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
    await ask.getByLabel(/^The link/).fill(freshLink());
    await ask.getByRole("button", { name: "Sign in" }).click();
    return ask.waitFor({ state: "hidden", timeout: 2000 }).then(() => true, () => false);
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
