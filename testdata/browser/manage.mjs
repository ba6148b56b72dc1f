// Settings on the page: an MCP server is added after its review, logged in to,
// disabled, enabled and removed; secrets are set and never shown; a client is
// connected by one button and restored by another; a setting goes back to its
// default. An old sign-in must be renewed before a program is started.
import { createServer } from "node:http";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accessible, api, check, fits, story, until, url, visit, world } from "./ken.mjs";

// Two remote MCP servers: one is open, one wants a login.
let loggedIn = false;
const server = createServer((r, w) => {
  let body = "";
  r.on("data", (piece) => (body += piece));
  r.on("end", () => {
    const base = "http://" + r.headers.host;
    const at = new URL(r.url, base);
    const json = (value, status = 200, headers = {}) => { w.writeHead(status, { "Content-Type": "application/json", ...headers }); w.end(JSON.stringify(value)); };
    if (at.pathname === "/.well-known/oauth-protected-resource/private") return json({ resource: base + "/private", authorization_servers: [base] });
    if (at.pathname.startsWith("/.well-known/")) return json({ issuer: base, authorization_endpoint: base + "/authorize", token_endpoint: base + "/token", registration_endpoint: base + "/register", response_types_supported: ["code"], code_challenge_methods_supported: ["S256"] });
    if (at.pathname === "/register") return json({ client_id: "ken", redirect_uris: JSON.parse(body).redirect_uris, token_endpoint_auth_method: "none" }, 201);
    if (at.pathname === "/authorize") { w.writeHead(302, { Location: at.searchParams.get("redirect_uri") + "?" + new URLSearchParams({ code: "c", state: at.searchParams.get("state") }) }); return w.end(); }
    if (at.pathname === "/token") { loggedIn = true; return json({ access_token: "token-of-the-story", token_type: "Bearer", expires_in: 3600 }); }
    if (at.pathname === "/private" && !(r.headers.authorization ?? "").includes("token-of-the-story")) return json({}, 401, { "WWW-Authenticate": `Bearer resource_metadata="${base}/.well-known/oauth-protected-resource/private"` });
    if (r.method !== "POST") { w.writeHead(405); return w.end(); }
    const q = JSON.parse(body);
    if (q.id === undefined) { w.writeHead(202); return w.end(); }
    const results = {
      initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "story", version: "1" } },
      "tools/list": { tools: [{ name: "look_up", description: "Look up a word in the dictionary of the story", inputSchema: { type: "object", properties: { word: { type: "string" } } } }] },
      ping: {},
    };
    return results[q.method] ? json({ jsonrpc: "2.0", id: q.id, result: results[q.method] }) : json({ jsonrpc: "2.0", id: q.id, error: { code: -32601, message: "no such method" } });
  });
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const base = "http://127.0.0.1:" + server.address().port;
const home = join(world, "home");
const claude = join(home, ".claude.json");
const before = JSON.stringify({ mcpServers: { notes: { type: "stdio", command: "no-such-program", args: ["a"], env: { NOTES_TOKEN: "ghp_abcdefghijklmnopqrstuvwxyz0123456789" } } } }, null, 2);
writeFileSync(claude, before);
const yaml = () => readFileSync(join(home, ".ken", "ken.yaml"), "utf8");

async function add(page, from, name) {
  await page.getByRole("button", { name: "Add…" }).click();
  await page.getByLabel("Which server?").fill(from);
  await page.getByText("More", { exact: true }).click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("button", { name: "Show what it asks for" }).click();
  await page.getByRole("button", { name: "Connect to it once" }).click();
}

await story(async ({ page, context, expectErrors }) => {
  // A server is added after what it asks for was seen.
  await visit(page, "/settings?topic=MCP+servers");
  await page.getByText(/No MCP server is behind Ken yet/).waitFor();
  await accessible(page, "MCP servers, empty");
  await add(page, base + "/open", "words");
  await page.getByText("look_up").waitFor();
  check(!yaml().includes("words"), "the server was added before it was agreed to");
  await accessible(page, "what a server asks for");
  await fits(page, "what a server asks for");
  await page.getByRole("button", { name: "Add it" }).click();
  const row = page.getByRole("listitem").filter({ hasText: base + "/open" });
  await row.getByText("enabled", { exact: true }).waitFor();
  check(yaml().includes(base + "/open"), "the server is not in ken.yaml");
  await until("its tool is in the catalog", async () => (await api("/why/mcp:words/look_up")).status === 200);
  await accessible(page, "MCP servers");

  // It is disabled and enabled again.
  await row.getByRole("button", { name: "Disable… words" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
  await row.getByText("disabled", { exact: true }).waitFor();
  check(yaml().includes("disabled: true") || /disabled["']?: *true/.test(yaml()), "ken.yaml does not say that it is disabled");
  await row.getByRole("button", { name: "Enable… words" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Enable" }).click();
  await row.getByText("enabled", { exact: true }).waitFor();

  // One that wants a login: the page of the provider opens, and Ken goes on.
  expectErrors(/request to http:\/\/127\.0\.0\.1/); // the provider is another site
  await add(page, base + "/private", "private");
  await page.getByText(/It wants a login/).waitFor();
  await page.getByRole("button", { name: "Add it" }).click();
  const wants = page.getByRole("listitem").filter({ hasText: base + "/private" });
  const [other] = await Promise.all([context.waitForEvent("page"), wants.getByRole("button", { name: "Log in to private" }).click()]);
  await other.getByText("go back to Ken").waitFor();
  await until("it is logged in", () => loggedIn);
  await wants.getByText("enabled", { exact: true }).waitFor();
  await other.close();

  // Both are removed.
  for (const name of ["words", "private"]) {
    await page.getByRole("button", { name: "Remove… " + name }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByRole("button", { name: "Remove… " + name }).waitFor({ state: "hidden" });
  }
  check(!yaml().includes(base), "a server is still in ken.yaml");

  // What cannot be added says why.
  expectErrors(/status of 4\d\d/);
  await page.getByRole("button", { name: "Add…" }).click();
  await page.getByLabel("Which server?").fill("not a server");
  await page.getByRole("button", { name: "Show what it asks for" }).click();
  await page.getByRole("alert").getByText(/Ken cannot add this/).waitFor();

  // A program is started only in the sandbox, and one that fails is not added.
  await page.getByLabel("command on this machine").check();
  await page.getByLabel("Command", { exact: true }).fill("no-such-program --flag");
  await page.getByRole("button", { name: "Show what it asks for" }).click();
  await page.getByText("confined: its own folder").waitFor();
  await page.getByRole("button", { name: "Start it once in the sandbox" }).click();
  await page.getByRole("alert").getByText(/It could not be used/).waitFor();
  check((await page.getByRole("button", { name: "Add it" }).count()) === 0, "a server that does not start can be added");
  await page.getByRole("button", { name: "Cancel" }).click();

  // A secret goes in and never comes out.
  await visit(page, "/settings/secrets");
  await page.getByLabel("Name", { exact: true }).fill("STORY_KEY");
  await page.getByLabel("Value", { exact: true }).fill("a-value-of-the-story");
  await page.getByRole("button", { name: "Store" }).click();
  await page.getByRole("listitem").getByText("STORY_KEY", { exact: true }).first().waitFor();
  check(!(await page.content()).includes("a-value-of-the-story") && (await page.getByLabel("Value", { exact: true }).inputValue()) === "", "the value is still on the page");
  await accessible(page, "secrets");
  await page.getByRole("button", { name: "Remove… STORY_KEY" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Remove… STORY_KEY" }).waitFor({ state: "hidden" });

  // Claude Code is connected by one button, and restored by another.
  await visit(page, "/settings/clients");
  const client = page.getByRole("group", { name: "Claude Code" });
  await client.getByRole("button", { name: "Show the plan for Claude Code" }).click();
  await client.getByText(/notes moves behind Ken/).waitFor();
  check(!(await page.content()).includes("ghp_abcdef"), "the plan shows a secret");
  await accessible(page, "the plan of a client");
  await client.getByRole("button", { name: "Connect Claude Code" }).click();
  await client.getByText("Restart Claude Code to use it.").waitFor();
  check(!readFileSync(claude, "utf8").includes("no-such-program"), "the server is still in the client's file");
  check(readFileSync(join(home, ".ken", "mcp.json"), "utf8").includes("no-such-program"), "Ken does not have the server");
  await client.getByRole("button", { name: "Disconnect…" }).click();
  await client.getByRole("button", { name: "Disconnect Claude Code" }).click();
  await client.getByRole("button", { name: "Show the plan for Claude Code" }).waitFor();
  check(readFileSync(claude, "utf8") === before, "the client's file is not as it was");

  // A setting goes back to its default.
  await visit(page, "/settings?q=chat.steps");
  await page.getByRole("button", { name: "Change chat.steps" }).click();
  await page.getByLabel("chat.steps", { exact: true }).fill("61");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("chat.steps changed").waitFor();
  await page.getByRole("button", { name: "Change chat.steps" }).click();
  await page.getByRole("button", { name: "Reset to default" }).click();
  await page.getByText("chat.steps has its default again").waitFor();
  check(!/steps: *61\b/.test(yaml()), "ken.yaml still has the value");
  check(existsSync(join(home, ".ken", "ken.yaml")), "ken.yaml is gone");

  // All of it is in the audit log.
  const recorded = JSON.stringify((await api("/audit?limit=200")).value);
  for (const what of ["mcp:words", "STORY_KEY", "client:claude", "config:chat.steps"]) check(recorded.includes(what), "the audit log does not have " + what);

  // Sign-in returns to the page that was asked for.
  await context.clearCookies();
  await page.goto(url + "/settings/secrets");
  await page.getByLabel("Token").fill(process.env.KEN_TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("tab", { name: "Secrets", selected: true }).waitFor();
});
server.close();
