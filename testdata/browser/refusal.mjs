// A call that leaves the workspace is refused. The person sees which rule said
// so, the model is told, and the trail has it.
import { story, check, control, say, answered, accessible, visit } from "./ken.mjs";

await story(async ({ page }) => {
  const turn = await say(page, "please leave etc/passwd", 1);
  const call = turn.getByRole("region", { name: "Call tool:read_file: refused" });
  await call.waitFor();
  const said = await call.innerText();
  check(said.includes("files.scope") && said.includes("Path traversal detected"), "the refusal does not say which rule refused it, and why: " + said);
  check(!/root:/.test(await turn.innerText()), "the file was read");
  await answered(page);
  check((await control("/heard")).includes("files.scope"), "the model was told: " + (await control("/heard")));
  await accessible(page, "a refusal");

  await visit(page, "/trail");
  const row = page.getByRole("link", { name: /refused.*tool:read_file/ });
  await row.click();
  const story = page.getByRole("list", { name: "What happened" });
  await story.getByRole("heading", { name: "Asked" }).waitFor();
  await story.getByText("refused").first().waitFor();
  await story.getByText("files.scope").first().waitFor();
});
