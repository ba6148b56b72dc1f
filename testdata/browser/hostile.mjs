// Whatever a model, a tool, a file or a catalog says is text. It becomes no
// element, no script and no request, wherever it is drawn; and what cannot be seen
// in it, or turns it around, is named.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { story, check, control, say, answered, visit, api, url, world, workspace } from "./ken.mjs";

const strings = [
  "<script>window.broken = 1</script>", '<img src=x onerror="window.broken = 2">', '"><svg onload=window.broken=3>', "<iframe srcdoc='<script>parent.broken=4</script>'></iframe>",
  "[a link](javascript:window.broken=5)", "![a picture](http://127.0.0.1:9/seen.png)", "<a href='javascript:window.broken=6'>x</a>", "{{constructor.constructor('window.broken=7')()}}", "${window.broken=8}",
  "<style>*{display:none}</style>", "<base href=http://127.0.0.1:9/>", "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>", "<form action=http://127.0.0.1:9/><button>Allow once</button></form>", "[x]: javascript:window.broken=9", "<http://127.0.0.1:9/>", "\u202egnp.exe\u202c \u200b\u0007",
];

// What joins and turns here belongs to scripts and emoji, and stays.
const honest = "👩\u200d💻 ❤\ufe0f שלום\u200f! می\u200cخواهم";

// What others found to be dangerous, where it is at hand.
const attacks = process.env.KEN_ATTACKS;
const known = attacks ? readdirSync(attacks).filter((f) => f.endsWith(".jsonl")).flatMap((f) => readFileSync(join(attacks, f), "utf8").split("\n").filter(Boolean).slice(0, 40).map((l) => JSON.parse(l).text)).filter((t) => typeof t === "string" && t) : [];
if (!attacks) console.log("KEN_ATTACKS is not set: only the story's own strings are tried");

// A catalog of them: names, descriptions, categories, tags, schemas, and a card's text.
const rows = [...strings, ...known].map((text, i) => ({
  id: "tool:hostile-" + i, kind: "tool", name: i < strings.length ? text : "hostile-" + i, displayName: text, description: "hostile " + text, category: text.slice(0, 60), tags: [text.slice(0, 60)],
  inputSchema: { type: "object", title: text, properties: { [text]: { type: "string", description: text, enum: [text], default: text } } },
}));
mkdirSync(join(world, "home", ".ken", "capabilities"), { recursive: true });
mkdirSync(join(world, "home", ".ken", "cards"), { recursive: true });
writeFileSync(join(world, "home", ".ken", "capabilities", "hostile.jsonl"), rows.map((r) => JSON.stringify(r)).join("\n"));
writeFileSync(join(world, "home", ".ken", "cards", "hostile.md"), "---\ncapability_id: hostile-card\ndescription: hostile card\ntriggers: {keywords: [hostile]}\n---\n" + strings.join("\n\n") + "\n");
writeFileSync(join(workspace, "hostile.txt"), strings.join("\n"));
writeFileSync(join(workspace, "odd.txt"), "\u202eabc\n\u001b[31mred\u200b\u200b\n" + honest);
writeFileSync(join(world, "script.json"), JSON.stringify({
  ["turn \u202earound"]: { text: "Take https://ok.example/\u202etxt.exe or [an \u202eexe](https://ok.example/\u202efdp.exe), **bold \u2066x**, `code \u202ey`, &#x202e;hidden.\n\n```\nrun \u202ez\n```\n\n" + honest },
}));
await control("/stop");
await control("/start");

await story(async ({ page, expectErrors }) => {
  const clean = async (where) => {
    const made = await page.evaluate(() => [...document.querySelectorAll("iframe, object, embed, base, form[action], meta[http-equiv], main img, main script, [onerror], [onload], a[href^='javascript:' i], main style")].map((e) => e.outerHTML.slice(0, 200)));
    check(made.length === 0, where + ": text became\n" + made.join("\n"));
    const odd = await page.evaluate(() => {
      const raw = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u2028-\u202e\u2060-\u206f\ufeff]/u;
      const all = [document.title];
      const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) all.push(texts.currentNode.data);
      for (const e of document.querySelectorAll("*")) for (const name of ["alt", "aria-description", "aria-label", "aria-valuetext", "label", "placeholder", "title"]) all.push(e.getAttribute(name) ?? "");
      return all.filter((t) => raw.test(t));
    });
    check(odd.length === 0, where + ": drawn as they are, and not by name: " + JSON.stringify(odd));
  };

  // What a model says, and what a tool gives back.
  const said = await say(page, "please hostile", 1);
  await answered(page);
  await said.getByText("<script>window.broken = 1</script>").first().waitFor();
  await clean("a model's text");
  await say(page, "please read hostile.txt", 2);
  await page.getByRole("region", { name: "Call tool:read_file: done" }).waitFor();
  await answered(page);
  await clean("a tool's result");
  await page.getByRole("button", { name: "Show all" }).first().click();
  await clean("all of a tool's result");

  // What turns text around: said by a person, by a model and by a file, while it
  // comes and when it is read again.
  const turned = await say(page, "turn \u202earound", 3);
  await answered(page);
  await say(page, "/read_file odd.txt", 4);
  await page.getByRole("article", { name: "Turn 4", exact: true }).getByText("abc").waitFor();
  await answered(page);
  for (const when of ["live", "after a reload"]) {
    const model = await turned.innerText(), file = await page.getByRole("article", { name: "Turn 4", exact: true }).innerText();
    for (const want of ["turn ⟨U+202E⟩around", "https://ok.example/⟨U+202E⟩txt.exe", "an ⟨U+202E⟩exe", "bold ⟨U+2066⟩x", "code ⟨U+202E⟩y", "⟨U+202E⟩hidden", "run ⟨U+202E⟩z", honest]) check(model.includes(want), `${when}: a turn does not show ${want}: ${model}`);
    for (const want of ["⟨U+202E⟩abc", "⟨U+001B⟩[31mred⟨U+200B×2⟩", honest]) check(file.includes(want), `${when}: a command's output does not show ${want}: ${file}`);
    const links = await turned.getByRole("link").evaluateAll((all) => all.map((a) => [a.getAttribute("href"), a.title]));
    for (const [href, title] of links) check(/^[!-~]+$/.test(href) && title === href, `${when}: a link leads to ${href} and says ${title}`);
    check(links.length === 2, when + ": the links are " + JSON.stringify(links));
    await clean("what turns text around, " + when);
    await page.reload();
    await turned.waitFor();
  }

  // What a person is asked.
  const file = "<img src=x onerror=window.broken=10>\u202etxt.";
  const third = await say(page, "please write " + file, 5);
  const card = third.getByRole("group", { name: /^Change .*\? tool:/s });
  await card.getByText("<img src=x onerror=window.broken=10>").first().waitFor();
  check(/U\+202E|\\u202e/.test(await card.innerText()), "what turns text around is not shown in the question: " + (await card.innerText()));
  await clean("a question");
  await visit(page, "/approvals");
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  await page.getByText(/^\d+ more details/).click();
  await clean("approvals");
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await page.getByText("Nothing is waiting for approval").waitFor();

  // The catalog, one by one and together.
  await visit(page, "/catalog?q=hostile");
  await page.getByRole("list", { name: "Capabilities" }).getByRole("link").first().waitFor();
  await clean("the catalog");
  const ids = (await api("/catalog?limit=500")).value.capabilities?.map((c) => c.id) ?? (await api("/search?q=hostile&limit=100")).value.hits.map((h) => h.id);
  const mine = ids.filter((id) => id.includes("hostile"));
  check(mine.length > 5, "the hostile catalog was not read: " + JSON.stringify(ids).slice(0, 300));
  for (const id of mine.filter((id) => !/hostile-\d{2,}$/.test(id))) {
    await visit(page, "/catalog/" + id.split("/").map(encodeURIComponent).join("/"));
    const detail = page.getByRole("region", { name: "Detail" });
    await detail.getByRole("heading", { level: 2 }).waitFor();
    for (const fold of await detail.getByText("The schema").all()) await fold.click();
    await clean("the detail of " + id);
  }
  for (const view of ["/catalog?tab=graph", "/catalog?tab=problems", "/catalog?tab=reviews", "/playground?q=hostile%20%3Cscript%3Ewindow.broken%3D11%3C%2Fscript%3E", "/trail", "/trail?text=%3Cimg%20src%3Dx%20onerror%3Dwindow.broken%3D12%3E", "/insights", "/settings?q=%3Cimg%20src%3Dx%3E", "/catalog/%3Cimg%20src%3Dx%20onerror%3Dwindow.broken%3D13%3E"]) {
    if (view.startsWith("/catalog/%3C")) expectErrors(/status of 404/);
    await visit(page, view);
    await page.waitForFunction(() => !document.querySelector("[aria-busy=true]"));
    await clean(view);
  }

  // The policy itself: it is there, and an inline script is blocked by it.
  const answer = await page.goto(url + "/chat");
  const policy = answer.headers()["content-security-policy"] ?? "";
  for (const want of ["default-src 'none'", "script-src 'self'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'", "require-trusted-types-for 'script'"]) check(policy.includes(want), "the policy lacks " + want + ": " + policy);
  check(!/unsafe-inline|unsafe-eval|\*/.test(policy), "the policy is too wide: " + policy);
  check(answer.headers()["x-content-type-options"] === "nosniff", "nosniff is missing");
  expectErrors(/Content Security Policy|TrustedScript|TrustedHTML/);
  const ran = await page.evaluate(() => {
    const tries = [
      () => { const s = document.createElement("script"); s.textContent = "window.ran = 1"; document.head.append(s); },
      () => { const s = document.createElement("script"); s.append("window.ran = 2"); document.head.append(s); },
      () => { document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = 3'>"); },
      () => { document.body.setAttribute("onclick", "window.ran = 4"); document.body.click(); },
      () => { setTimeout("window.ran = 5", 0); },
      () => { location.href = "javascript:window.ran = 6"; },
    ];
    for (const t of tries) { try { t(); } catch { /* it was blocked at once */ } }
    return new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(window.ran), 50)));
  });
  check(ran === undefined, "an injected script ran: " + ran);
});
