// Searching 6,067 tools: the list follows each letter within 50 ms. What is found
// can be narrowed, walked through with arrow keys, and read; the graph of all of
// them is drawn.
import { story, check, measured, accessible, visit, fits } from "./ken.mjs";

await story(async ({ page }) => {
  await visit(page, "/catalog");
  const field = page.getByRole("searchbox", { name: "Search capabilities" });
  const list = page.getByRole("list", { name: "Capabilities" });
  await list.getByRole("link").first().waitFor();

  // From the event of a letter to the list that is painted for it.
  await page.evaluate(() => {
    window.took = [];
    document.addEventListener("input", (e) => {
      const { timeStamp, target: { value } } = e;
      const look = () => {
        if (document.querySelector("[data-query]")?.dataset.query !== value) return false;
        requestAnimationFrame(() => {
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = () => window.took.push(performance.now() - timeStamp);
          port2.postMessage(null);
        });
        return true;
      };
      const watch = new MutationObserver(() => look() && watch.disconnect());
      watch.observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-query"] });
    }, { capture: true });
  });
  // type gives how long each letter of a message took.
  const type = async (words) => {
    await page.evaluate(() => { window.took = []; });
    for (const [i, letter] of [...words].entries()) {
      await page.keyboard.press(letter === " " ? "Space" : letter);
      await page.waitForFunction((n) => window.took.length >= n, i + 1);
    }
    return page.evaluate(() => window.took);
  };
  await field.focus();
  const forecast = await type("weather forecast");
  check(/weather|forecast/i.test(await list.getByRole("link").first().innerText()), "the first hit for weather forecast is " + (await list.getByRole("link").first().innerText()));
  measured("catalog-search-first", forecast[0], "ms"); // it reads the index

  // The machine has other work too: the best of five counts.
  const medians = [], all = [];
  const messages = ["send an email", "read a web page", "list my files", "weather in oslo", "create an issue"];
  for (const words of messages) {
    await page.keyboard.press("Escape"); // empties the field
    check((await field.inputValue()) === "", "Escape does not empty the field");
    const took = await type(words);
    console.log("ms by letter: " + took.map((t) => t.toFixed(0)).join(" "));
    medians.push(took.toSorted((a, b) => a - b)[took.length >> 1]);
    all.push(...took);
  }
  measured("catalog-search-max", Math.max(...all), "ms");
  measured("catalog-search-median", Math.min(...medians), "ms");
  await accessible(page, "catalog");

  // Arrow keys go into the list and back, Enter opens.
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  check(await list.getByRole("link").nth(1).evaluate((e) => e === document.activeElement), "the second hit has no focus after two arrows");
  const name = await list.getByRole("link").nth(1).locator(".name").innerText();
  await page.keyboard.press("Enter");
  await page.waitForURL(/catalog\/./);
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  check(await field.evaluate((e) => e === document.activeElement), "arrows do not lead back to the field");
  const detail = page.getByRole("region", { name: "Detail" });
  await detail.getByRole("heading", { name, level: 2 }).waitFor();
  await detail.getByRole("heading", { name: "Parameters" }).waitFor();
  await detail.getByText("The schema").click();
  await detail.getByRole("group", { name: "json code" }).getByText('"properties"').first().waitFor();
  await accessible(page, "detail");

  // Filters narrow, and say how much they leave.
  await field.fill("");
  await page.getByRole("status").filter({ hasText: /^6,1\d\d capabilities/ }).waitFor();
  const filters = page.getByRole("group", { name: "Filters" });
  await filters.getByRole("button", { name: /^skill/ }).click();
  await page.getByRole("status").filter({ hasText: /^\d+ capabilities$/ }).waitFor();
  for (const kind of await list.locator(".tag").allInnerTexts()) check(kind !== "tool", "a filter for skills shows a tool");
  await filters.getByRole("button", { name: /^skill/, pressed: true }).click();
  await page.getByRole("status").filter({ hasText: /^6,1\d\d capabilities/ }).waitFor();
  const few = await list.getByRole("link").count();
  await page.getByRole("button", { name: "Show more" }).click();
  await list.getByRole("link").nth(2 * few - 1).waitFor({ state: "attached" });

  // The graph of all of it.
  await page.getByRole("link", { name: "Graph", exact: true }).click();
  const picture = page.getByRole("img", { name: /^6,142 capabilities/ });
  await page.waitForFunction(() => document.querySelector("[data-drawn]"));
  measured("graph-drawn", Number(await picture.getAttribute("data-drawn")), "ms");
  check((await picture.locator("canvas").count()) > 0, "there is no canvas");
  await accessible(page, "graph");
  await fits(page, "graph");
  await page.getByRole("combobox", { name: "Find in the graph" }).fill("get_weather");
  await page.getByRole("option").first().waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Detail" }).getByRole("heading", { level: 2, name: /get_weather/ }).waitFor();
});
