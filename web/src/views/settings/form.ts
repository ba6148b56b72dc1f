// How a setting is filled in, from the schema of its value.
import type { Setting } from "../../lib/types";

export type Field = "switch" | "choice" | "number" | "list" | "text";

export function fieldOf(s: Setting): Field {
  const types = [s.form?.type ?? []].flat();
  if (s.form?.enum?.every((v) => typeof v === "string")) return "choice";
  if (types.includes("boolean")) return "switch";
  if (types.includes("array") && (s.form?.items as { type?: string } | undefined)?.type === "string") return "list";
  if (types.length && types.every((t) => t === "integer" || t === "number" || t === "null")) return "number";
  return "text";
}

// standard puts the default of a setting into words.
export function standard(s: Setting): string {
  const v = s.form?.default;
  if (v === undefined) return "";
  if (v === null || v === "" || (Array.isArray(v) && !v.length)) return "empty";
  return typeof v === "object" ? JSON.stringify(v) : String(v);
}

// bounds says what numbers are allowed.
export function bounds(s: Setting): string {
  const { minimum: from, maximum: to } = s.form ?? {};
  if (from !== undefined && to !== undefined) return `${from} to ${to}`;
  return from !== undefined ? `at least ${from}` : to !== undefined ? `at most ${to}` : "";
}

// A list is one entry in a line while it is edited, and a JSON list when it is sent.
export function lines(value: string): string {
  try {
    const list: unknown = JSON.parse(value);
    if (Array.isArray(list)) return list.join("\n");
  } catch { /* as YAML writes it: [a, b] */ }
  return value.replace(/^\[|\]$/g, "").split(/,\s*/).map((w) => w.replace(/^(["'])(.*)\1$/, "$2")).filter(Boolean).join("\n");
}
export const listed = (text: string) => JSON.stringify(text.split("\n").map((l) => l.trim()).filter(Boolean));
