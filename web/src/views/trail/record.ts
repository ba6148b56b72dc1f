import type { TrailRecord } from "../../lib/types";

// Records are as the trail keeps them, in snake_case; these read one.
export const text = (r: TrailRecord, name: string) => (typeof r[name] === "string" ? (r[name] as string) : "");
export const number = (r: TrailRecord, name: string) => (typeof r[name] === "number" ? (r[name] as number) : undefined);
export const caller = (r: TrailRecord) => r.origin === "person" ? "a person" : r.origin === "app" ? "an app, " + (notes(r).app ?? "of a server") : "the model";

export function notes(r: TrailRecord): Record<string, string> {
  return (r.metadata as { notes?: Record<string, string> } | undefined)?.notes ?? {};
}

// A Look is a status as it is shown: a word, a sign and a tone, never a tone alone.
export interface Look { word: string; sign: string; tone: Tone }
export type Tone = "done" | "failed" | "refused" | "person" | "other";
export const tones: { tone: Tone; name: string }[] = [
  { tone: "done", name: "done" }, { tone: "failed", name: "failed" }, { tone: "refused", name: "refused" },
  { tone: "person", name: "asked and answered" }, { tone: "other", name: "other" },
];

const looks: Record<string, Look> = {
  capability_executed: { word: "done", sign: "✓", tone: "done" },
  capability_slow: { word: "slow", sign: "◷", tone: "done" },
  capability_failed: { word: "failed", sign: "✕", tone: "failed" },
  capability_timeout: { word: "timed out", sign: "◷", tone: "failed" },
  capability_unknown: { word: "unknown", sign: "?", tone: "failed" },
  security_violation: { word: "refused", sign: "⊘", tone: "refused" },
  capability_asked: { word: "asked", sign: "◔", tone: "person" },
  capability_started: { word: "running", sign: "▸", tone: "other" },
  extension_changed: { word: "changed", sign: "✎", tone: "other" },
  audit_chain_opened: { word: "opened", sign: "○", tone: "other" },
  audit_chain_retired: { word: "retired", sign: "○", tone: "other" },
};

export function look(r: TrailRecord): Look {
  if (r.event === "approval_settled") {
    const answer = notes(r).answer;
    if (answer === "grant") return { word: "allowed", sign: "✓", tone: "person" };
    return { word: answer === "revoke" ? "revoked" : "denied", sign: "⊘", tone: "person" };
  }
  if (r.event === "capability_failed" && r.status === "CANCELLED") return { word: "cancelled", sign: "⊘", tone: "other" };
  return Object.hasOwn(looks, r.event) ? looks[r.event]! : { word: r.event.replaceAll("_", " "), sign: "·", tone: "other" };
}

// what names the thing that a record is about.
export const what = (r: TrailRecord) => text(r, "target") || text(r, "command") || text(r, "extension_id") || (r.chain as { name?: string } | undefined)?.name || "Ken itself";

// excerpt is the one line that says most of a record.
export function excerpt(r: TrailRecord): string {
  const n = notes(r);
  const said = text(r, "command_line") || n.note || n.line || "";
  const error = text(r, "error").replace(/^ask about \S+: /, ""); // what is asked about stands beside it
  return error ? (said ? said + " — " : "") + error : said;
}

// A Row is a call, or something else that happened: the newest record of it,
// and how many there are.
export interface Row { key: string; record: TrailRecord; count: number; slow: boolean }

// fold puts the records of one call into one row. They come newest first; the
// record that ended the call stands for all of it.
export function fold(records: TrailRecord[]): Row[] {
  const rows: Row[] = [];
  const calls = new Map<string, Row>();
  for (const r of records) {
    const effect = text(r, "effect_id");
    const row = effect ? calls.get(effect) : undefined;
    if (!row) {
      const one = { key: effect || r.id, record: r, count: 1, slow: r.event === "capability_slow" };
      rows.push(one);
      if (effect) calls.set(effect, one);
      continue;
    }
    row.count++;
    if (r.event === "capability_slow") row.slow = true;
    // The warning that a call was slow says less than its end.
    else if (row.record.event === "capability_slow") row.record = r;
  }
  return rows;
}
