// Five tabs side by side, each with a session of its own: a browser has six
// connections to a server, and no tab waits for another. They share one feed, and
// another takes it over when the tab that has it is closed.
import { story, check, say, answered, visit, until } from "./ken.mjs";

await story(async ({ page, context }) => {
  const feeds = new Set();
  let opened = 0; // feeds, ever
  context.on("request", (r) => { if (r.url().includes("/feed")) { feeds.add(r); opened++; } });
  for (const over of ["requestfinished", "requestfailed"]) context.on(over, (r) => feeds.delete(r));

  const pages = [page];
  await visit(page, "/chat"); // a new page: its feed is counted
  for (let i = 1; i < 4; i++) {
    pages.push(await context.newPage());
    await visit(pages[i], "/chat");
  }
  for (const [i, p] of pages.entries()) {
    await say(p, "please say hello to tab " + i, 1);
    await answered(p);
  }
  await until("one feed is open", () => feeds.size === 1);

  // Each of them asks, and has its answer, while all of them listen.
  const took = await Promise.all(pages.map((p) => p.evaluate(async () => {
    const begin = performance.now();
    await fetch("/api/v1/me");
    return performance.now() - begin;
  })));
  check(Math.max(...took) < 2000, "a tab waits for its answer: " + took.map((t) => t.toFixed(0)).join(", ") + " ms");

  // What waits in one is told in all, also in one that comes later.
  const waiting = (p) => p.getByRole("link", { name: /Approvals\s*1 waiting/ });
  await say(pages[3], "please write later.txt", 2);
  await Promise.all(pages.map((p) => waiting(p).waitFor()));
  pages.push(await context.newPage());
  await visit(pages[4], "/trail");
  await waiting(pages[4]).waitFor();
  check(feeds.size === 1, feeds.size + " feeds are open in five tabs");

  // The tab with the feed goes, and another has it.
  const before = opened;
  await pages.shift().close();
  await until("another tab opens the feed", () => opened > before);
  await pages[2].getByRole("button", { name: "Deny", exact: true }).click();
  await Promise.all(pages.map((p) => waiting(p).waitFor({ state: "hidden" })));
  await answered(pages[2]);
});
