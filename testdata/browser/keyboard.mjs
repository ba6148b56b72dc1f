// Everything without a mouse: letters that lead to the views, the tab key that
// reaches whatever can be used, and a focus that is seen.
import { story, check, visit } from "./ken.mjs";

// What the tab key must reach in this view: of radio buttons and of tabs, one.
const reachable = () => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter((e) =>
  e.tabIndex >= 0 && !e.disabled && e.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: false }) && !(e.type === "radio" && !e.checked)
  && !e.closest("details:not([open]) > :not(summary)") && !e.closest("[inert]"));

await story(async ({ page, context }) => {
  await context.addInitScript(`window.reachable = ${reachable}`);
  const heading = (name) => page.getByRole("heading", { level: 1, name, exact: true });
  const main = page.getByRole("navigation", { name: "Main" });

  // g and a letter lead to each view.
  await visit(page, "/settings");
  for (const [key, name] of [["k", "Catalog"], ["p", "Playground"], ["a", "Approvals"], ["t", "Audit log"], ["i", "Insights"], ["s", "Settings"], ["c", "New session"]]) {
    await page.locator("body").click({ position: { x: 2, y: 2 } });
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await heading(name).waitFor();
  }

  // ? lists the keys; Escape closes the list.
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keys" });
  await keys.waitFor();
  await page.keyboard.press("Escape");
  await keys.waitFor({ state: "hidden" });

  // A slash leads to the field of the view, and letters in a field are letters.
  for (const view of ["/chat", "/catalog", "/catalog?tab=graph", "/playground", "/trail", "/settings"]) {
    await visit(page, view);
    await page.waitForFunction(() => document.querySelector("[data-first]"));
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press("/");
    check(await page.evaluate(() => document.activeElement?.hasAttribute("data-first")), view + ": a slash does not lead to its field");
    await page.keyboard.type("gk?");
    check((await page.evaluate(() => document.activeElement.value)) === "gk?", view + ": of gk? the field has " + (await page.evaluate(() => document.activeElement.value)));
  }

  for (const view of ["/chat", "/catalog/skill%3Acode-review", "/playground?q=review%20a%20change", "/approvals", "/trail", "/insights", "/settings/about", "/settings/doctor"]) {
    await visit(page, view);
    await page.waitForFunction(() => !document.querySelector("[aria-busy=true]"));
    await main.waitFor();

    // Each of them shows that it has the focus.
    const unseen = await page.evaluate(() => {
      const look = (e) => { const out = []; for (let at = e, i = 0; at && i < 4; at = at.parentElement, i++) { const s = getComputedStyle(at); out.push(s.outlineStyle === "none" ? "" : s.outline, s.boxShadow, s.borderColor); } return out.join("|"); };
      return window.reachable().filter((e) => {
        e.focus({ focusVisible: true, preventScroll: true });
        const on = look(e);
        e.blur();
        return on === look(e);
      }).map((e) => e.outerHTML.slice(0, 160));
    });
    check(unseen.length === 0, view + ": the focus is not seen on\n" + unseen.join("\n"));

    // And the tab key reaches all of them.
    await page.evaluate(() => {
      window.missed = new Set(window.reachable());
      document.addEventListener("focusin", (e) => window.missed.delete(e.target));
      window.getSelection().removeAllRanges();
      document.body.tabIndex = -1;
      document.body.focus();
      document.body.removeAttribute("tabindex");
    });
    const most = await page.evaluate(() => window.missed.size);
    for (let i = 0; i < most + 10; i++) await page.keyboard.press("Tab");
    const missed = await page.evaluate(() => [...window.missed].filter((e) => e.isConnected).map((e) => e.outerHTML.slice(0, 160)));
    check(missed.length === 0, view + ": the tab key does not reach\n" + missed.join("\n"));
  }

  // The way past the navigation.
  await visit(page, "/trail");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  check(await page.evaluate(() => document.activeElement?.id === "main"), "the first link does not skip to the content");
});
