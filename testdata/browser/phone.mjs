// On a phone: the views are under the thumb, what is touched is large enough,
// nothing must be scrolled sideways, and the field stays over the keyboard.
import { story, check, say, answered, accessible, fits, visit } from "./ken.mjs";

// small lists what is there to be touched and is less than 44 px high. Links
// within a text are as high as the text; the columns of the trail's strip have
// the period beside them.
const small = (page) => page.evaluate(() => [...document.querySelectorAll("a, button, input, select, summary, textarea")]
  .filter((e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !e.closest("p, dd, td, th, small, .skip, [hidden], .code") && e.dataset.i === undefined && e.type !== "checkbox" && e.type !== "range")
  .map((e) => ({ e, box: e.getBoundingClientRect() }))
  .filter(({ box }) => box.height > 1 && box.height < 43.5)
  .map(({ e, box }) => `${e.tagName} ${(e.getAttribute("aria-label") || e.innerText || e.placeholder || "").slice(0, 30)} ${box.height.toFixed(0)} px`));

await story(async ({ page }) => {
  const bar = page.getByRole("navigation", { name: "Main" });
  await say(page, "please write later.txt", 1);
  await page.getByRole("group", { name: /^Change .*\? tool:/s }).waitFor();
  await bar.getByRole("link", { name: /Approvals\s*1 waiting/ }).waitFor();
  const chat = new URL(page.url()).pathname;

  const found = [];
  for (const view of [chat, "/catalog", "/catalog?tab=graph", "/catalog?tab=problems", "/catalog/skill%3Acode-review", "/playground?q=review%20a%20change", "/approvals", "/trail", "/insights", "/settings", "/settings/doctor"]) {
    await visit(page, view);
    await page.waitForFunction(() => !/Checking…|Searching…|Reading older/.test(document.querySelector("main").innerText) && !document.querySelector("[aria-busy=true]"));
    await fits(page, view);
    found.push(...(await small(page)).map((what) => view + ": " + what));
    const box = await bar.boundingBox();
    check(Math.abs(box.y + box.height - 844) < 1, view + ": the bar ends at " + (box.y + box.height));
  }

  // On a small phone the button that stops a turn is inside its form.
  await visit(page, chat);
  await page.setViewportSize({ width: 360, height: 740 });
  const stop = await page.getByRole("button", { name: "Stop" }).boundingBox();
  const form = await page.getByRole("form", { name: "Message" }).boundingBox();
  check(stop.x + stop.width <= form.x + form.width, `the stop button ends at ${stop.x + stop.width}, and its form at ${form.x + form.width}`);
  await page.setViewportSize({ width: 390, height: 844 });

  check(found.length === 0, "too small to be touched:\n" + found.join("\n"));

  // The other views are one touch away.
  await bar.getByRole("button", { name: "More" }).or(bar.getByRole("button", { name: "Settings" })).tap();
  const more = page.getByRole("dialog", { name: "More" });
  await accessible(page, "more");
  await more.getByRole("link", { name: "Insights" }).tap();
  await page.getByRole("heading", { name: "Insights", level: 1 }).waitFor();
  await more.waitFor({ state: "hidden" });

  // With the keyboard open there is room for the field, and not for the bar.
  await bar.getByRole("link", { name: "Chat" }).tap();
  await visit(page, chat);
  const field = page.getByRole("textbox", { name: "Message" });
  await field.tap();
  await page.setViewportSize({ width: 390, height: 420 });
  await bar.waitFor({ state: "hidden" });
  const { y, height } = await field.boundingBox();
  check(y > 0 && y + height <= 420, `the field is from ${y} to ${y + height} of 420`);
  await page.setViewportSize({ width: 390, height: 844 });
  await bar.waitFor();
  await page.getByRole("button", { name: "Deny", exact: true }).tap();
  await answered(page);
}, { viewport: { width: 390, height: 844 }, mobile: true });
