// Connections break in the middle of an answer. Whatever breaks, the rest comes
// by itself, and every word of it once.
import { story, check, control, say, answered, until, Cable } from "./ken.mjs";

// What the model says to please hold.
const whole = "The first half is here. " + "And it goes on. ".repeat(40) + "This was the second half.";

async function begun(page, n) {
  const turn = await say(page, "please hold", n);
  await turn.getByText("The first half is here.").waitFor();
  return turn;
}
async function complete(page, turn, how) {
  await turn.getByText("This was the second half.").waitFor();
  await answered(page);
  const have = (await turn.locator(".answer").allInnerTexts()).join("").replace(/\s+/g, " ").trim();
  check(have === whole, how + ": the answer is\n" + have + "\nwant\n" + whole);
}

const cable = new Cable();
const through = await cable.plug();

await story(async ({ page, expectErrors }) => {
  expectErrors(/^console: Failed to load resource: net::ERR_/); // by every name that a browser has for a cut cable
  const offline = page.getByText("offline", { exact: true });

  // Everything is cut off; the answer goes on without the page, and is complete
  // before the page is back.
  let turn = await begun(page, 1);
  cable.pull();
  await offline.waitFor();
  await control("/go");
  cable.restore();
  await offline.waitFor({ state: "hidden" });
  await complete(page, turn, "after everything was cut off");

  // The stream of the session alone ends, twice, and the answer goes on after that.
  turn = await begun(page, 2);
  for (let i = 0; i < 2; i++) {
    await until("the stream is open", () => cable.cut("/events?") > 0);
    const before = cable.asked.length;
    await until("the page asks for the rest", () => cable.asked.slice(before).some((head) => head.includes("/events?")));
    const head = cable.asked.slice(before).find((h) => h.includes("/events?"));
    check(/last-event-id: *\S+|[?&]after=[^& ]+/i.test(head), "the page does not say which event it has: " + head);
  }
  await control("/go");
  await complete(page, turn, "after the stream was cut twice");

  // The page itself is opened anew in the middle.
  turn = await begun(page, 3);
  await page.reload();
  await turn.getByText("The first half is here.").waitFor();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await control("/go");
  await complete(page, turn, "after a reload");

  // Read again from what was kept, all of it is the same.
  await page.reload();
  for (const n of [1, 2, 3]) await complete(page, page.getByRole("article", { name: "Turn " + n, exact: true }), "turn " + n + " as it was kept");

  // The server ends and comes back at its address. Nobody has to sign in again.
  await control("/stop");
  await offline.waitFor();
  await control("/start");
  await offline.waitFor({ state: "hidden" });
  check(page.url().startsWith(through + "/chat/"), "after a restart the page is at " + page.url());
  turn = await begun(page, 4);
  await control("/go");
  await complete(page, turn, "after the server was started again");
}, { through });
