// With nothing configured: the demo plays a real conversation. Its page is marked,
// one call waits for the person, and its audit log has what happened.
import { accessible, check, story, visit } from "./ken.mjs";

await story(async ({ page }) => {
  await visit(page, "/demo/chat");
  const banner = page.getByRole("note");
  check((await banner.textContent()).includes("A script plays the model"), "the page does not say that it is the demo");
  await accessible(page, "the demo");
  await page.getByRole("button", { name: /Read the file shopping.txt/ }).click();
  await page.getByText("The list has milk, bread, tea and apples.").waitFor();
  const requests = page.getByRole("group", { name: "Requests of the demo" });
  await requests.getByRole("button", { name: /replace tea by coffee/ }).click();
  const card = page.locator("[data-question]");
  await card.getByRole("button", { name: /Allow once/ }).click();
  await page.getByText("The list has coffee instead of tea.").waitFor();
  await requests.getByRole("button", { name: /Write a copy/ }).click();
  await page.getByText(/Ken did not run the call/).waitFor();
  await requests.getByRole("link", { name: "Now use a real model" }).waitFor();

  // Links stay in the demo; the audit log is its own.
  await requests.getByRole("link", { name: "See the audit log" }).click();
  await page.waitForURL(/\/demo\/trail$/);
  await page.getByText("tool:apply_diff").first().waitFor();
  await banner.getByRole("link", { name: "Leave the demo" }).click();
  await page.waitForURL(/\/chat$/);
  check((await page.getByRole("note").count()) === 0, "the user's own page is marked as the demo");
});
