// What the catalog's words mean to a person.
import { clip } from "../../lib/odd";
import type { Description } from "../../lib/types";

// All that is known of one capability; every field but the first few may be missing.
export interface Whole extends Description {
  displayName?: string; aliases?: string[];
  parameters?: { name: string; type?: string; description?: string; required?: boolean }[];
  permissions?: string[]; requiredTools?: string[]; requiredSecrets?: string[]; requiredBins?: string[]; requiredPlatforms?: string[];
  unavailable?: string; effects?: Partial<Record<"readOnly" | "destructive" | "idempotent" | "openWorld", boolean>>;
  run?: { runner?: string }; withheld?: string; hash?: string; standing?: string;
  findings?: { rule: string; severity: string; field?: string; line?: number; excerpt?: string }[];
}

export interface Origin { source?: string; format?: string; location?: string; path?: string; line?: number; pointer?: string }

export type Tone = "good" | "warn" | "bad" | "";

// standing says in a word or two whether something can be used now.
export function standing(state: string, available: boolean, noRunner?: string): { word: string; tone: Tone } {
  if (state === "quarantined") return { word: "quarantined", tone: "bad" };
  if (state === "shadowed") return { word: "shadowed", tone: "warn" };
  if (state !== "active") return { word: state || "unknown", tone: "warn" };
  if (available && noRunner) return { word: "no runner", tone: "" };
  return available ? { word: "available", tone: "good" } : { word: "unavailable", tone: "warn" };
}

export const states: Record<string, string> = {
  active: "Models can see and call it.",
  quarantined: "Models cannot see it until an operator reviews it.",
  shadowed: "Another capability with the same ID takes precedence.",
};

export const trusts: Record<string, string> = {
  remote: "from a third party: a server or a URL",
  workspace: "from the open project",
  user: "installed or configured by the operator",
  builtin: "part of Ken itself",
};

// relation names how another capability relates to the one that is looked at.
export function relation(type: string, needs?: boolean): string {
  switch (type) {
    case "DEPENDS_ON": return needs === undefined ? "Depends on" : needs ? "Needs" : "Needed by";
    case "COMPOSED_WITH": return "Used together with";
    case "TAGGED_WITH": return "Shares tags with";
    case "SAME_CATEGORY": return "In the same category";
  }
  return type.toLowerCase().replaceAll("_", " ");
}

// effects are the hints about what a call does, as sentences.
export function effects(e: Whole): string[] {
  const said = e.effects ?? {};
  const out: string[] = [];
  if (said.readOnly) out.push("read-only");
  else if (said.readOnly === false || e.hasSideEffects) out.push("has side effects");
  if (said.destructive) out.push("may delete or overwrite data");
  else if (said.destructive === false && !said.readOnly) out.push("not destructive");
  if (said.idempotent) out.push("idempotent");
  if (said.openWorld) out.push("reaches external systems");
  else if (said.openWorld === false) out.push("stays on this machine");
  return out;
}

export function place(o: Origin | undefined): string {
  if (!o) return "";
  if (!o.path) return o.source ?? "";
  return o.path + (o.line ? ":" + o.line : o.pointer ? "#" + o.pointer : "");
}

// firstLine is what fits into a row of a list.
export function firstLine(text: string): string {
  const line = text.slice(0, 400).replace(/\s+/g, " ").trim();
  return clip(line, 240);
}

// Colours of kinds, from the page's own; the rest share the last.
const paints: Record<string, string> = {
  tool: "--brief", skill: "--full", card: "--cards", command: "--map", extension: "--cards", channel: "--good", voice: "--warn", productivity: "--accent",
};
export const paint = (kind: string) => (Object.hasOwn(paints, kind) ? paints[kind]! : "--soft");
