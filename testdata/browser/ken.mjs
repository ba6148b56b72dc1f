// What stories share: a browser that is signed in, and words to say what is
// wanted. A story is a program; whatever it throws is its failure.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";

const need = (name) => {
  const value = process.env[name];
  if (!value) throw new Error(name + " is not set: stories are played by go test -run TestBrowser ./cmd/ken");
  return value;
};
const require = createRequire(join(need("KEN_NPM"), "package.json"));
const { chromium } = require("playwright-core");

export const url = need("KEN_URL");
export const out = need("KEN_OUT");
export const token = need("KEN_TOKEN");
export const workspace = need("KEN_WORKSPACE"); // where the server works
export const world = need("KEN_WORLD"); // the folder around it, with the home
let link = need("KEN_LINK");

export const freshLink = () => link;

// control leads the world from outside of the page: /go lets what the model
// holds back go on, /stop and /start the server, /heard tells what the model was
// told last.
export async function control(path) {
  const answer = await fetch(need("KEN_MODEL_CONTROL") + path, { method: "POST" });
  const text = await answer.text();
  if (!answer.ok) throw new Error("control " + path + ": " + text);
  if (path === "/start") link = text;
  return text;
}

// api asks the API as a program does.
export async function api(path, body) {
  const answer = await fetch(url + "/api/v1" + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { Authorization: "Bearer " + token, "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return { status: answer.status, value: await answer.json().catch(() => null) };
}

export function check(ok, what) {
  if (!ok) throw new Error(what);
}

// patience is how long a story waits for what must come. A slow machine is not a
// failure, so it is long.
const patience = 180_000;

// until waits until what is asked for becomes true: for what is not in the page.
export async function until(what, ask) {
  for (const end = Date.now() + patience; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) {
    if (await ask()) return;
  }
  throw new Error("it did not come to pass: " + what);
}

// story opens a browser, signs in by the printed link, and tells it. These fail
// every story, unless it says that it wants them: errors of the page, breaches of
// its policy, dialogs, requests to other places, and text that became script.
// The page is asked for at through, where that is not the server itself.
export async function story(tell, { signIn = true, viewport = { width: 1280, height: 800 }, colorScheme = "light", mobile = false, through = url } = {}) {
  // Without a GPU the graph is drawn by the processor.
  const browser = await chromium.launch({ executablePath: need("KEN_CHROMIUM"), args: ["--no-sandbox", "--enable-unsafe-swiftshader"] });
  const context = await browser.newContext({ viewport, colorScheme, hasTouch: mobile, isMobile: mobile, reducedMotion: "reduce" });
  const wrong = [];
  const expected = []; // expressions of errors that the story causes itself
  const expectErrors = (expression) => expected.push({ expression, from: wrong.length }); // from now on
  await context.addInitScript(() => Object.defineProperty(window, "broken", { set: (by) => console.error("text became script: " + by) }));
  context.on("page", (page) => watch(page, wrong, through));
  const page = await context.newPage();
  try {
    if (signIn) await open(page, through);
    await tell({ page, context, browser, expectErrors });
    const bad = wrong.filter((w, i) => !expected.some((e) => i >= e.from && e.expression.test(w)));
    check(bad.length === 0, "the page reported errors:\n" + bad.join("\n"));
  } catch (e) {
    const shot = join(out, "failure.png");
    await page.screenshot({ path: shot }).catch(() => {});
    console.error("at " + page.url() + "; a picture is in " + shot + "\n" + wrong.join("\n"));
    throw e;
  } finally {
    await browser.close();
  }
}

// watch writes down what a page must not do.
function watch(page, wrong, through) {
  page.setDefaultTimeout(patience);
  page.on("pageerror", (e) => wrong.push("page error at " + page.url() + ": " + e.stack));
  page.on("console", (m) => m.type() === "error" && wrong.push("console: " + m.text() + " " + (m.location()?.url ?? "")));
  page.on("dialog", (d) => { wrong.push("dialog: " + d.message()); void d.dismiss(); });
  page.on("request", (r) => {
    const to = new URL(r.url());
    if (to.origin !== through && to.protocol !== "data:" && to.protocol !== "blob:") wrong.push("request to " + r.url());
  });
}

// open opens the page by the printed link and waits until it is there.
export async function open(page, through = url) {
  await page.goto(link.replace(url, through));
  await page.getByRole("navigation", { name: "Main" }).waitFor();
}

// visit goes to a view by its address.
export async function visit(page, path, through = url) {
  await page.goto(through + path);
  await page.getByRole("heading", { level: 1 }).waitFor();
}

// say writes a message and sends it, and gives the turn that comes of it. Turns
// are counted by the session.
export async function say(page, text, turn) {
  const field = page.getByRole("textbox", { name: "Message" });
  await field.fill(text);
  await field.press("Enter");
  const exchange = page.getByRole("article", { name: "Turn " + turn, exact: true });
  await exchange.waitFor();
  return exchange;
}

// answered waits until nothing runs any more.
export async function answered(page) {
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
}

// accessible fails where axe finds something serious in what is shown, by all of
// its rules or by one.
export async function accessible(page, where, rule) {
  // What is evaluated from here is not bound by the page's policy.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate((rule) => window.axe.run(document, { resultTypes: ["violations"], ...(rule ? { runOnly: [rule] } : {}) }), rule);
  const serious = violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  check(serious.length === 0, where + ": axe finds " + serious.map((v) => v.id + ": " + v.help + "\n  " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + n.failureSummary).join("\n  ")).join("\n"));
}

// fits fails where the page as a whole must be scrolled sideways.
export async function fits(page, where) {
  const [have, want] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  check(have <= want, `${where}: the page is ${have} px wide, and the window ${want}`);
}

// measured keeps a number for the benchmark of the page, which has bars; a story judges none.
export function measured(name, value, unit) {
  console.log(`measured ${name} ${value.toFixed(1)} ${unit}`);
  writeFileSync(join(out, name + ".txt"), String(value));
}

// A cable is between the page and the server, and can be pulled.
export class Cable {
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

  // open gives how many connections have a last request with this in it.
  open(what) { return [...this.#pairs].filter((p) => p.head.includes(what)).length; }

  pull() { this.#pulled = true; this.cut(""); }
  restore() { this.#pulled = false; }

  // cut ends the connections whose last request has this in it.
  cut(what) {
    const cut = [...this.#pairs].filter((p) => p.head.includes(what));
    for (const p of cut) { p.near.destroy(); p.far.destroy(); }
    return cut.length;
  }
}
