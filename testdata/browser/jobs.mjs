// Calls that run later: one is added in chat, one from the catalog and one by
// another program. The page follows them, cancels one and runs one again.
import { story, check, accessible, api, fits, visit } from "./ken.mjs";

await story(async ({ page }) => {
  // In chat a job is a card, which says what came of it.
  await page.getByRole("textbox", { name: "Message" }).fill("/later /read_file notes.txt");
  await page.keyboard.press("Enter");
  const card = page.getByRole("region", { name: /^Job / });
  await card.getByText("done", { exact: true }).waitFor();
  await card.getByText("Result").click();
  await accessible(page, "the card of a job");
  await page.reload();
  await card.getByText("done", { exact: true }).waitFor();

  // The list hears of a job that somebody else adds, and of its end.
  await visit(page, "/jobs");
  await page.getByRole("link", { name: /read_file/ }).waitFor();
  const { value: later } = await api("/jobs", { target: "tool:list_files", intent: "READ_FILE", at: "2036-01-31T12:00:00Z" });
  const row = page.getByRole("listitem").filter({ hasText: "list_files" });
  await row.getByText("scheduled", { exact: true }).waitFor();
  await accessible(page, "the list of jobs");
  await fits(page, "the list of jobs");

  // One is cancelled and run again, and what it gave is there.
  await row.getByRole("link").click();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("status").getByText("cancelled", { exact: true }).waitFor();
  await accessible(page, "a job that was cancelled");
  await page.getByRole("button", { name: "Run again" }).click();
  await page.getByRole("heading", { name: "Result" }).waitFor();
  check((await page.getByRole("status").getByText("done", { exact: true }).count()) === 1, "the job that ran again is not done");
  check(page.url().endsWith("/jobs/" + later.id), "the job has not its own address: " + page.url());

  // A call of the catalog runs as a job.
  await visit(page, "/catalog/tool%3Aread_file");
  await page.getByText("Run it", { exact: true }).click();
  await page.getByRole("textbox", { name: "Arguments, as JSON" }).fill('{"path": "notes.txt"}');
  await page.getByRole("button", { name: "Run as a job" }).click();
  await page.getByRole("heading", { name: "Result" }).waitFor();

  // Rows are a table, and a column's name sorts it.
  await visit(page, "/catalog/tool%3Ashell");
  await page.getByText("Run it", { exact: true }).click();
  await page.getByRole("textbox", { name: "Arguments, as JSON" }).fill(JSON.stringify({ command: `echo '[{"n":10},{"n":9}]'` }));
  await page.getByRole("button", { name: "Run as a job" }).click();
  const table = page.getByRole("group", { name: "Table of 2 rows" });
  await table.waitFor();
  const cells = () => table.getByRole("cell").allTextContents();
  check((await cells()).join() === "10,9", "the rows are not as they came: " + (await cells()));
  await table.getByRole("button", { name: "n" }).click();
  check((await cells()).join() === "9,10", "the rows are not sorted: " + (await cells()));
  await accessible(page, "a table");
});
