// Connections break in the middle of an answer. Whatever breaks, the rest comes
// by itself, and every word of it once.
import net from "node:net";
import { story, check, control, say, answered, until, url } from "./ken.mjs";

// A cable is between the page and the server, and can be pulled.
class Cable {
  asked = []; // the first lines of all requests
  #pairs = new Set();
  #pulled = false;

  async plug() {
    const server = net.createServer((near) => {
      if (this.#pulled) { near.destroy(); return; }
      const far = net.connect(Number(new URL(url).port), "127.0.0.1");
      const pair = { near, far, head: "" };
      this.#pairs.add(pair);
      near.on("data", (bytes) => {
        const text = bytes.toString("latin1");
        if (/^(GET|POST|PUT|DELETE) /.test(text)) { pair.head = text; this.asked.push(text); }
      });
      near.pipe(far).pipe(near);
      for (const end of [near, far]) {
        end.on("error", () => {});
        end.on("close", () => { near.destroy(); far.destroy(); this.#pairs.delete(pair); });
      }
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    server.unref();
    return "http://127.0.0.1:" + server.address().port;
  }

  pull() { this.#pulled = true; this.cut(""); }
  restore() { this.#pulled = false; }

  // cut ends the connections whose last request has this in it.
  cut(what) {
    const cut = [...this.#pairs].filter((p) => p.head.includes(what));
    for (const p of cut) { p.near.destroy(); p.far.destroy(); }
    return cut.length;
  }
}

// What the model says to please hold.
const whole = "The first half is here. " + "And it goes on. ".repeat(40) + "This was the second half.";

async function begun(page, n) {
  const turn = await say(page, "please hold", n);
  await turn.getByText("The first half is here.").waitFor();
  return turn;
}
async function complete(page, turn, how) {
  await turn.getByText("This was the second half.").waitFor({ timeout: 30_000 });
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
  await offline.waitFor({ state: "hidden", timeout: 30_000 });
  await complete(page, turn, "after everything was cut off");

  // The stream of the session alone ends, twice, and the answer goes on after that.
  turn = await begun(page, 2);
  for (let i = 0; i < 2; i++) {
    await until("the stream is open", () => cable.cut("/events?") > 0);
    const before = cable.asked.length;
    await until("the page asks for the rest", () => cable.asked.slice(before).some((head) => head.includes("/events?")), 30_000);
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
  await offline.waitFor({ state: "hidden", timeout: 30_000 });
  check(page.url().startsWith(through + "/chat/"), "after a restart the page is at " + page.url());
  turn = await begun(page, 4);
  await control("/go");
  await complete(page, turn, "after the server was started again");
}, { through });
