// What was called stands in the trail, with its whole story. The trail is in
// order; when a byte of it is changed behind Ken's back, it says so and where.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { story, check, say, answered, accessible, visit, world } from "./ken.mjs";

await story(async ({ page }) => {
  await say(page, "please read notes.txt", 1);
  await answered(page);
  await say(page, "please leave etc/passwd", 2);
  await answered(page);

  await visit(page, "/trail");
  const done = page.getByRole("link", { name: /done\s+tool:read_file/ });
  await done.waitFor();
  await page.getByRole("link", { name: /refused\s+tool:read_file/ }).waitFor();
  await accessible(page, "trail");

  // A filter is in the address, and leaves what passes it.
  await page.getByRole("combobox", { name: "Events" }).selectOption({ label: "Refusals" });
  await done.waitFor({ state: "detached" });
  check(new URL(page.url()).searchParams.get("event") === "refusals", "the filter is not in the address: " + page.url());
  await page.getByRole("combobox", { name: "Events" }).selectOption({ label: "Everything" });

  await done.click();
  const steps = page.getByRole("list", { name: "What happened" });
  for (const step of ["Asked", "Decided", "Ended"]) await steps.getByRole("heading", { name: step, exact: true }).waitFor();
  await steps.getByText("READ_FILE").first().waitFor();
  await page.getByRole("link", { name: "Download the proof" }).waitFor();
  await accessible(page, "one call");
  await page.getByRole("link", { name: "← Audit log" }).click();

  await page.getByRole("button", { name: "Verify the audit log" }).click();
  const result = page.getByRole("region", { name: "Audit log verification" });
  await result.getByText("All signed records are present and unchanged.").waitFor();
  await accessible(page, "verified");

  const file = changed();
  await result.getByRole("button", { name: "Verify again" }).click();
  await result.getByText("Verification failed.").waitFor();
  const row = result.getByRole("row").filter({ hasText: /changed|signature|broken/ }).first();
  const said = await row.innerText();
  check(/record \d+/.test(said) && said.includes(file), "it does not say where: " + said + "; " + file + " was changed");
  await accessible(page, "a broken trail");
});

// changed changes one letter of one record, and gives the name of its file.
function changed() {
  const home = join(world, "home", ".ken");
  for (const name of readdirSync(home, { recursive: true })) {
    if (!/audit.*\.jsonl$/.test(name)) continue;
    const text = readFileSync(join(home, name), "utf8");
    if (!text.includes("capability_executed")) continue;
    writeFileSync(join(home, name), text.replace("capability_executed", "capability_exECuted"));
    return name.split("/").at(-1);
  }
  throw new Error("there is no file of the trail in " + home + ": " + readdirSync(home, { recursive: true }).join("\n"));
}
