// What a model would be shown, as it changes while settings are moved; a message
// is kept with what is right for it, and measured.
import { story, check, accessible, visit } from "./ken.mjs";

await story(async ({ page }) => {
  await visit(page, "/playground");
  await page.getByRole("heading", { name: "What would the model see?" }).waitFor();
  await page.getByRole("textbox", { name: "Message" }).pressSequentially("review the change in this pull request");
  check((await page.getByRole("textbox", { name: "Message" }).inputValue()) === "review the change in this pull request", "letters are lost while typing: " + (await page.getByRole("textbox", { name: "Message" }).inputValue()));
  const ranking = page.getByRole("list", { name: "Ranking" });
  const first = ranking.getByRole("listitem").first();
  await first.getByRole("link", { name: "code-review" }).waitFor();
  await page.getByRole("region", { name: "What would be shown" }).getByRole("img", { name: /tokens: map/ }).waitFor();
  await page.waitForFunction(() => new URL(location.href).searchParams.get("q"));
  await accessible(page, "playground");

  // Fewer lines: what has one no longer is said to have lost it.
  const order = () => ranking.getByRole("listitem").allInnerTexts();
  const before = await order();
  const slider = page.getByRole("group", { name: "How many" }).getByRole("slider", { name: "Briefs" });
  await slider.focus();
  for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowLeft");
  await ranking.getByText("no longer shown").first().waitFor();
  check(JSON.stringify(await order()) !== JSON.stringify(before), "the ranking did not change");

  // A floor that nothing reaches: nothing would be shown, and it says by which setting.
  await page.getByRole("group", { name: "Thresholds" }).getByRole("slider", { name: "Any match" }).focus();
  await page.keyboard.press("End");
  await page.getByText("Nothing is shown:").waitFor();
  await page.getByText("2 changed").first().waitFor();
  await page.getByRole("button", { name: "Reset all" }).click();
  await page.getByText("same as ken.yaml").waitFor();
  await ranking.getByText("no longer shown").first().waitFor({ state: "detached" });

  // Kept as a case, and measured.
  await page.getByRole("button", { name: "Save as an eval case" }).click();
  await ranking.getByRole("checkbox", { name: "Expected: skill:code-review" }).check();
  await accessible(page, "saving a case");
  await page.getByRole("button", { name: "Save the case" }).click();
  const cases = page.getByRole("region", { name: /^Saved cases/ });
  await cases.getByText("skill:code-review").waitFor();
  await cases.getByRole("button", { name: "Run all" }).click();
  await cases.getByRole("group", { name: "Measures" }).waitFor();
  await cases.getByText("the expected result is number 1").waitFor();
  await accessible(page, "measured");

  await page.reload();
  await cases.getByText("skill:code-review").waitFor();
  await cases.getByRole("button", { name: /^Delete the case/ }).click();
  await cases.getByText("No cases yet.").waitFor();

  // The catalog is asked for in its own words.
  const catalog = page.getByRole("region", { name: "Your catalog" });
  await catalog.getByRole("button", { name: "Check the catalog" }).click();
  await catalog.getByRole("button", { name: "Check again" }).waitFor();
  await catalog.getByText("In the first three").waitFor();
  await catalog.getByRole("heading", { name: "Confused with each other" }).waitFor();
  await catalog.getByRole("heading", { name: "Descriptions to improve" }).waitFor();
  check(/requests for [\d,]+ capabilities/.test(await catalog.innerText()), "how much was asked is not told: " + (await catalog.innerText()));
  await accessible(page, "the catalog checked");
});
