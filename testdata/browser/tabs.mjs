// Five tabs side by side, each with a session of its own: a browser has six
// connections to a server, and no tab waits for another. They share one feed, and
// another takes it over when the tab that has it is closed.
import { story, check, say, answered, visit, until, Cable } from "./ken.mjs";

// The feeds are counted on the wire: a browser does not tell of one that ends
// because its page goes elsewhere.
const cable = new Cable();
const through = await cable.plug();
const feeds = () => cable.open("/feed");
const opened = () => cable.asked.filter((head) => head.includes("/feed")).length; // ever

await story(async ({ page, context }) => {
  const pages = [page];
  await visit(page, "/chat", through);
  for (let i = 1; i < 4; i++) {
    pages.push(await context.newPage());
    await visit(pages[i], "/chat", through);
  }
  for (const [i, p] of pages.entries()) {
    await say(p, "please say hello to tab " + i, 1);
    await answered(p);
  }
  await until("one feed is open", () => feeds() === 1);

  // Each of them asks, and has its answer, while all of them listen.
  // One that waited for a connection would wait until a feed ends, and none does.
  await Promise.all(pages.map((p) => p.evaluate(() => fetch("/api/v1/me", { signal: AbortSignal.timeout(120_000) }).then((r) => r.text()))));

  // What waits in one is told in all, also in one that comes later.
  const waiting = (p) => p.getByRole("link", { name: /Approvals\s*1 waiting/ });
  await say(pages[3], "please write later.txt", 2);
  await Promise.all(pages.map((p) => waiting(p).waitFor()));
  pages.push(await context.newPage());
  await visit(pages[4], "/trail", through);
  await waiting(pages[4]).waitFor();
  check(feeds() === 1, feeds() + " feeds are open in five tabs");

  // The tab with the feed goes, and another has it.
  const before = opened();
  await pages.shift().close();
  await until("another tab opens the feed", () => opened() > before);
  await pages[2].getByRole("button", { name: "Deny", exact: true }).click();
  await Promise.all(pages.map((p) => waiting(p).waitFor({ state: "hidden" })));
  await answered(pages[2]);
}, { through });
