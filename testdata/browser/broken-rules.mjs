// A configuration that cannot be followed is said over every view, with the way
// to the doctor, until it is fixed. Another model is named once it answers, and
// what a command gave is drawn once, before and after a reload.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { story, check, say, answered, accessible, fits, visit, world } from "./ken.mjs";

const file = join(world, "home", ".ken", "ken.yaml");
const good = readFileSync(file, "utf8");

await story(async ({ page }) => {
  const times = async (turn) => (await turn.innerText()).split("The harbour opens at six.").length - 1;
  const turn = await say(page, "/read_file notes.txt", 1);
  await turn.getByText("The harbour opens at six.").first().waitFor();
  await answered(page);
  check((await times(turn)) === 1, "what the command gave is drawn " + (await times(turn)) + " times, want once");
  await page.reload();
  await turn.getByText("The harbour opens at six.").first().waitFor();
  check((await times(turn)) === 1, "after a reload it is drawn " + (await times(turn)) + " times, want once");

  writeFileSync(file, good.replace("lab/scripted", "lab/other"));
  await say(page, "/read_file notes.txt", 2);
  await page.getByTitle("the model that answers").getByText("lab/other").waitFor();

  const banner = page.getByRole("alert").filter({ hasText: "Ken denies all calls until this is fixed" });
  check((await banner.count()) === 0, "a fault is shown, and there is none");
  writeFileSync(file, good + "policy: {askAbovee: 5}\n");
  const refused = await say(page, "/read_file notes.txt", 3);
  await refused.getByText(/No rules are loaded, so nothing is allowed: .*ken\.yaml:\d+: unknown key/).first().waitFor();
  await banner.getByText(/ken\.yaml:\d+: unknown key policy\.askAbovee/).waitFor();
  await accessible(page, "a fault");
  await fits(page, "a fault");
  await visit(page, "/catalog");
  const strays = []; // the view that is left must not follow the address to the next one
  page.on("request", (r) => new URL(r.url()).pathname.startsWith("/api/v1/catalog/") && strays.push(r.url()));
  await banner.getByRole("link").click();
  await page.getByRole("tab", { name: "Doctor", selected: true }).waitFor();
  check(strays.length === 0, "the catalog was asked on the way to the doctor: " + strays.join(" "));

  writeFileSync(file, good);
  await page.evaluate(() => window.dispatchEvent(new Event("focus")));
  await banner.waitFor({ state: "detached" });
});
