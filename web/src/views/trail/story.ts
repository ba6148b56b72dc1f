import { bytes, count, took, when } from "../../lib/format";
import type { Story, TrailRecord } from "../../lib/types";
import { said } from "../approvals/answer";
import { isolated } from "./isolation";
import { caller, look, notes, number, text, type Look } from "./record";

// A Step is one thing that happened to a call.
export interface Step { name: string; look: Look; at: string; facts: [string, string][]; warn?: string[]; record?: TrailRecord }

// facts keeps those that are known.
const facts = (...all: [string, string | undefined][]) => all.filter((f): f is [string, string] => !!f[1]);

function asked(r: TrailRecord): Step {
  const meta = (r.metadata ?? {}) as { args_count?: number; work_dir?: string };
  return {
    name: "Asked", look: { word: "asked", sign: "●", tone: "other" }, at: r.timestamp, record: r,
    facts: facts(
      ["by", caller(r)], ["for", text(r, "user_id")], ["session", text(r, "session_id")],
      ["capability", text(r, "target")], ["action", text(r, "action")], ["intent", text(r, "intent")], ["mode", text(r, "mode")],
      ["line", text(r, "command_line")], ["arguments", meta.args_count ? count(meta.args_count) : ""], ["folder", meta.work_dir],
      ["digest of arguments", text(r, "args_digest")],
    ),
  };
}

function decided(r: TrailRecord): Step {
  const how = text(r, "decision");
  const words: Record<string, Look> = {
    allow: { word: "allowed", sign: "✓", tone: "done" }, ask: { word: "approval required", sign: "◔", tone: "person" }, deny: { word: "refused", sign: "⊘", tone: "refused" },
  };
  const risk = number(r, "risk");
  return {
    name: "Decided", look: words[how] ?? { word: how, sign: "·", tone: "other" }, at: r.timestamp, record: r,
    facts: facts(["rule", text(r, "rule")], ["risk", risk === undefined ? "" : risk + " of 100"]),
  };
}

function answered(r: TrailRecord): Step {
  const n = notes(r);
  return {
    name: "Answered", look: look(r), at: r.timestamp, record: r,
    facts: facts(["by", text(r, "user_id")], ["answer", said(n.answer ?? "", n.scope ?? "")], ["until", n.until && when(n.until)], ["note", n.note], ["rule", text(r, "rule")], ["ticket", n.ticket]),
  };
}

function started(r: TrailRecord): Step {
  const held = isolated(r.isolation);
  return {
    name: "Started", look: { word: "started", sign: "▸", tone: "other" }, at: r.timestamp, record: r,
    facts: facts(["by", text(r, "runner")], ["sandbox", held?.holds.join("; ")]), warn: held?.missing.map((m) => "Sandbox limitation: " + m),
  };
}

function ended(r: TrailRecord, began?: TrailRecord): Step {
  const ms = number(r, "duration_ms"), code = number(r, "exit_code"), size = number(r, "result_bytes");
  // How it was held was told when it started, unless it turned out otherwise.
  const held = JSON.stringify(r.isolation) === JSON.stringify(began?.isolation) ? null : isolated(r.isolation);
  return {
    name: r.event === "capability_slow" ? "Slow" : "Ended", look: look(r), at: r.timestamp, record: r,
    facts: facts(
      ["took", ms === undefined ? "" : took(ms)], ["exit code", code === undefined ? "" : String(code)],
      ["result", size === undefined ? "" : bytes(size) + (r.truncated ? ", cut" : "")], ["error", text(r, "error")],
      ["sandbox", held?.holds.join("; ")],
      ["digest of output", text(r, "stdout_digest")], ["digest of error output", text(r, "stderr_digest")], ["kept as", text(r, "result_handle")],
      ...Object.entries(notes(r)).map(([k, v]): [string, string] => [k, v]),
    ),
  };
}

// steps tells a call's story in order: asked, decided, answered, started, ended.
// The first record says three of them at once.
export function steps(s: Story): Step[] {
  const list: Step[] = [];
  const calls = s.records.filter((r) => text(r, "effect_id") || r.event.startsWith("capability_") || r.event === "security_violation");
  const first = calls[0];
  if (first) list.push(asked(first));
  const judged = calls.find((r) => text(r, "decision"));
  if (judged) list.push(decided(judged));
  const began = calls.find((r) => r.event === "capability_started");
  for (const r of s.records) {
    if (r.event === "approval_settled") list.push(answered(r));
    else if (r.event === "capability_started") list.push(started(r));
    else if (r.event !== "capability_asked") list.push(calls.includes(r) ? ended(r, began) : { name: look(r).word, look: look(r), at: r.timestamp, record: r, facts: facts(["about", text(r, "extension_id")], ["action", text(r, "action")], ...Object.entries(notes(r)).map(([k, v]): [string, string] => [k, v])) });
  }
  return list;
}
