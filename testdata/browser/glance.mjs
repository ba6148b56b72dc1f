// A glance at another tab, and back: what is listened to goes on. Who stays away
// lets the streams go, and takes them up again.
import { story, check, control, say, answered, until, visit } from "./ken.mjs";

await story(async ({ page, context }) => {
  // The story says whether the tab is seen and what time it is, and counts the streams.
  await context.addInitScript(() => {
    const Source = window.EventSource;
    window.streams = [];
    window.EventSource = class extends Source { constructor(...args) { super(...args); window.streams.push(this); } };
    window.away = false;
    Object.defineProperty(document, "hidden", { get: () => window.away });
  });
  const look = (away) => page.evaluate((away) => { window.away = away; document.dispatchEvent(new Event("visibilitychange")); }, away);
  const open = () => page.evaluate(() => window.streams.filter((s) => s.readyState !== EventSource.CLOSED).map((s) => new URL(s.url).pathname.split("/").at(-1)).sort().join());
  const both = () => until("the feed and the session are listened to", async () => (await open()) === "events,feed");

  await page.clock.install();
  await visit(page, "/chat");
  const turn = await say(page, "please hold", 1);
  await turn.getByText("The first half is here.").waitFor();
  await both();

  await look(true);
  await page.clock.runFor(500);
  await look(false);
  await page.clock.runFor(4000);
  check((await open()) === "events,feed", "after a glance elsewhere what is listened to is: " + (await open()));
  await control("/go");
  await turn.getByText("This was the second half.").waitFor();
  await answered(page);

  // Longer than a glance: nothing is listened to, and on return all that came is there.
  const second = await say(page, "please hold", 2);
  await second.getByText("The first half is here.").waitFor();
  await look(true);
  await page.clock.runFor(2500);
  check((await open()) === "", "in the background what is listened to is: " + (await open()));
  await control("/go");
  await look(false);
  await second.getByText("This was the second half.").waitFor();
  await answered(page);
  await both();
});
