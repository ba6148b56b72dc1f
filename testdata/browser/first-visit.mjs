// The printed link opens the page, signed in, and the token is gone from the
// address. It is at most 120 kB compressed and paints within half a second. A stranger gets a form, and nothing else.
import { story, check, measured, accessible, freshLink, url, token } from "./ken.mjs";

await story(async ({ page, browser, expectErrors }) => {
  expectErrors(/status of 401/);
  const stranger = await page.goto(url + "/chat");
  check(stranger.status() === 401, "GET /chat without a token = " + stranger.status() + ", want 401");
  await page.getByLabel("Token").waitFor();
  await accessible(page, "sign in");
  const api = await page.request.get(url + "/api/v1/me");
  check(api.status() === 401 && (await api.json()).code, "the API answers a stranger with " + api.status() + ", want 401 and a code");

  await page.getByLabel("Token").fill("a wrong token");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();

  // Another browser, by the link.
  const context = await browser.newContext();
  const other = await context.newPage();
  await other.goto(freshLink());
  await other.getByRole("navigation", { name: "Main" }).waitFor();
  check(!other.url().includes("token") && !other.url().includes(token), "the address still has the token: " + other.url());
  const cookies = await context.cookies();
  check(cookies.length > 0 && cookies.every((c) => c.httpOnly && c.sameSite === "Strict"), "cookies = " + JSON.stringify(cookies) + ", want HttpOnly and SameSite=Strict");

  // What a browser with an empty cache fetches until the page is there, as it is sent.
  const fresh = await browser.newContext();
  const first = await fresh.newPage();
  await first.goto(freshLink());
  await first.getByRole("textbox", { name: "Message" }).waitFor();
  const bytes = await first.evaluate(() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .filter((e) => !e.name.includes("/api/")).reduce((sum, e) => sum + e.encodedBodySize, 0));
  check(bytes > 20_000, "the sizes of what was fetched are not known: " + bytes);
  measured("first-load", bytes / 1000, "kB");
  await fresh.close();

  const times = [];
  for (let i = 0; i < 5; i++) {
    await other.reload();
    times.push(await other.evaluate(() => new Promise((done) => {
      new PerformanceObserver((list) => list.getEntriesByName("first-contentful-paint").forEach((e) => done(e.startTime))).observe({ type: "paint", buffered: true });
    })));
  }
  const best = Math.min(...times);
  measured("first-paint", best, "ms");
  await other.getByRole("textbox", { name: "Message" }).waitFor();
  await accessible(other, "chat");
}, { signIn: false });
