// A person asks, a model reads a file, and beside it stands what it was shown.
// What the file says is text, whatever it looks like.
import { story, check, say, answered, accessible } from "./ken.mjs";

await story(async ({ page }) => {
  const hello = await say(page, "please greet **me**", 1);
  await answered(page);
  check((await hello.locator("strong").first().innerText()) === "Hello.", "the answer is not drawn as Markdown: " + (await hello.innerText()));

  const turn = await say(page, "please read notes.txt", 2);
  const call = turn.getByRole("region", { name: /^Call tool:read_file: done$/ });
  await call.waitFor();
  check((await call.getByRole("link", { name: "tool:read_file" }).getAttribute("href")) === "/catalog/tool%3Aread_file", "the call does not lead to its capability");
  await call.getByRole("button", { name: "Arguments" }).click();
  await call.getByRole("group", { name: "json code" }).getByText('"path": "notes.txt"').waitFor();
  await call.getByText("The harbour opens at six.").waitFor();
  await answered(page);
  await turn.getByText(/It says: .*The harbour opens at six\./s).waitFor();
  const hostile = "<img src=x onerror=\"window.broken = 'notes'\">";
  check((await turn.innerText()).split(hostile).length > 2, "the result and the answer do not both show the markup as text: " + (await turn.innerText()));
  check((await turn.locator("img").count()) === 0, "text of a file became a picture");

  // What was shown, and why.
  const inspector = page.getByRole("complementary", { name: "Inspector" });
  await inspector.getByRole("heading", { name: "Turn 2" }).waitFor();
  const shown = inspector.getByRole("region", { name: "Shown" });
  await shown.getByRole("img", { name: /^\d+ of \d+ tokens: map \d+, brief \d+, cards \d+, full \d+$/ }).waitFor();
  await shown.getByRole("heading", { name: /^(Briefs|In full)/ }).first().waitFor();
  await shown.getByRole("img", { name: /^score \d/ }).first().waitFor();
  const cache = inspector.getByRole("region", { name: "Prompt cache" });
  await cache.getByText("prefix kept").waitFor();
  check((await cache.getByRole("img", { name: /^step \d: read 800,/ }).count()) === 2, "want two steps that read 800 tokens from the cache: " + (await cache.innerText()));
  await inspector.getByRole("region", { name: "Intents" }).getByText("READ_FILE").waitFor();
  await accessible(page, "chat with a call");

  // The turn before can be looked at too.
  await page.getByRole("button", { name: "Inspect turn 1" }).click();
  await inspector.getByRole("heading", { name: "Turn 1" }).waitFor();
  await inspector.getByText("please greet **me**").waitFor();

  // All of it is there again when the page is opened anew.
  const before = await page.getByRole("log").innerText();
  await page.reload();
  await page.getByRole("article", { name: "Turn 2" }).getByText(/It says: /).waitFor();
  for (const text of ["Hello.", "The harbour opens at six.", hostile]) {
    check((await page.getByRole("log").innerText()).includes(text), "after a reload the conversation lacks " + text + "; before it was\n" + before);
  }
});
