// What is typed to add something, as the server wants it, and words for states.
import type { Addition, ManagedItem } from "../../lib/types";

export interface Typed { how: "from" | "command"; from: string; command: string; name: string; args: string; env: string; read: string; write: string; hosts: string }

export const blank = (): Typed => ({ how: "from", from: "", command: "", name: "", args: "", env: "", read: "", write: "", hosts: "" });

const lines = (text: string) => text.split("\n").map((l) => l.trim()).filter(Boolean);

// words splits a command line at spaces. What is in quotes stays together. No shell
// reads it.
export function words(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((m) => m[1] ?? m[2] ?? m[3]!);
}

export function request(t: Typed): Record<string, unknown> {
  const what = t.how === "command" ? { command: words(t.command) } : { from: t.from.trim() };
  const all: Record<string, unknown> = { ...what, name: t.name.trim(), args: t.how === "command" ? [] : lines(t.args), env: lines(t.env), read: lines(t.read), write: lines(t.write), hosts: lines(t.hosts) };
  return Object.fromEntries(Object.entries(all).filter(([, v]) => (Array.isArray(v) ? v.length : v)));
}

export const tone = (i: ManagedItem) => (i.state === "failed" ? "bad" : i.pending || i.state === "unlisted" || i.login ? "warn" : i.state === "enabled" ? "good" : "");
export function stateOf(i: ManagedItem): string {
  if (i.login) return "needs a login";
  return { differs: "waits for review", unreviewed: "waits for review", unlisted: "not started yet" }[i.state] ?? i.state;
}

export interface Gone { secrets: string[]; logged_out?: boolean; login_used?: string; shared?: { secret: string; by: string }[] }

// goneText says what was removed with something, and what stays.
export function goneText(title: string, gone: Gone): string {
  const out = [title + " is removed."];
  if (gone.logged_out) out.push("Its login is removed too: the token and the client registration.");
  if (gone.login_used) out.push("Its login stays, because a server of this name is still defined: " + gone.login_used + ".");
  if (gone.secrets.length) out.push("These secrets stay: " + gone.secrets.join(", ") + ".");
  for (const s of gone.shared ?? []) out.push(`The secret ${s.secret} stays, because ${s.by} needs it.`);
  return out.join(" ");
}

// counted says how many tools run, ask and are denied.
export function counted(list: { decision: string }[]): string {
  const say = { allow: "without asking", ask: "after asking you", deny: "never: a rule denies it" } as Record<string, string>;
  return Object.keys(say).map((d) => [list.filter((t) => t.decision === d).length, say[d]] as const).filter(([n]) => n).map(([n, w]) => `${n} ${w}`).join(", ");
}

// facts are what a person must know of something before it is added.
export function facts(a: Addition): [string, string][] {
  const out: [string, string | undefined][] = [];
  const s = a.server, p = a.package, api = a.api;
  if (s) {
    const d = s.definition;
    out.push(["Server", s.name], ["From", s.from], ["It says", [s.title, s.description].filter(Boolean).join(". ")], ["Package", s.package], ["Replaces", s.replaces]);
    out.push(["Command", d.command && [d.command, ...(d.args ?? [])].join(" ")], ["Address", d.url]);
    for (const [name, list] of [["Variable", d.env], ["Header", d.headers]] as const) for (const [k, v] of Object.entries(list ?? {})) out.push([name, k + " = " + v]);
    if (d.command) out.push(["Sandbox", d.profile === "confined" ? "confined: its own folder, and what stands here" : d.profile], ["May read", d.read?.join(", ")], ["May change", d.write?.join(", ")], ["May reach", d.hosts?.join(", ") || "no host"]);
    for (const n of s.notes) out.push(["Note", n]);
    out.push(["Digest", s.digest]);
    if (s.tools.length) out.push(["Tools", s.tools.map((t) => t.id.replace(/^mcp:[^/]*\//, "")).join(", ")], ["Your rules", s.tools.length + " tools: they run " + counted(s.tools)]);
    const held = s.tools.filter((t) => t.findings).length;
    if (held) out.push(["Quarantine", held + " with suspicious text; models do not see them"]);
  }
  if (p) {
    out.push(["Package", p.id], ["From", p.from], ["Commit", p.commit]);
    for (const l of p.lines) if (!/^\s*(extension|place|schema|digest)\s*$/.test(l.name)) out.push([l.name, l.text]);
    p.steps.forEach((x, i) => out.push(["Step " + (i + 1), x.argv.join(" ") + (x.hosts?.length ? ", reaches " + x.hosts.join(", ") : ", without a network")]));
    out.push(["Files", p.sha256]);
  }
  if (api) {
    out.push(["API", api.name], ["From", api.from], ["Server", api.server], ["Operations", api.operations.length + ": they run " + counted(api.operations)], ["Hosts", api.hosts.map((h) => h.name).join(", ")]);
    for (const x of api.secrets) out.push(["Secret", x.name + (x.set ? " (set)" : " (not set)")]);
    for (const b of api.blocked) out.push(["Blocked", b + " is an address of this machine or network; sandbox.networks opens it"]);
    for (const b of api.problems.slice(0, 5)) out.push(["Note", b]);
    out.push(["Digest", "sha256:" + api.sha256]);
  }
  return out.filter((f): f is [string, string] => !!f[1]);
}
