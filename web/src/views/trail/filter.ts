import type { TrailRecord } from "../../lib/types";
import { text } from "./record";

// A Group is a choice of events that people look for together. `ask` is what the
// server is asked for besides.
export interface Group { key: string; name: string; events: string[]; ask?: Record<string, string> }
export const groups: Group[] = [
  { key: "", name: "Everything", events: [] },
  { key: "done", name: "Done", events: ["capability_executed"] },
  { key: "failures", name: "Failures", events: ["capability_failed", "capability_timeout", "capability_unknown"] },
  { key: "refusals", name: "Refusals", events: ["security_violation"] },
  { key: "approvals", name: "Approvals", events: ["capability_asked", "approval_settled"] },
  { key: "slow", name: "Slow", events: ["capability_slow"] },
  { key: "changes", name: "Changes", events: ["extension_changed"] },
  { key: "chains", name: "Chains", events: ["audit_chain_opened", "audit_chain_retired"], ask: { all: "true" } },
];

// A Filter is what the address says. Times are as the address has them: an
// instant, or how long ago.
export interface Filter { event: string; target: string; session: string; user: string; since: string; until: string; text: string }
export const names = ["event", "target", "session", "user", "since", "until", "text"] as const;
export const usual = "7d"; // the period where the address names none
export const periods = [["1h", "1 hour"], ["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"], ["all", "All"]] as const;

export function read(q: URLSearchParams): Filter {
  const f = Object.fromEntries(names.map((n) => [n, q.get(n) ?? ""])) as unknown as Filter;
  f.since ||= usual;
  return f;
}

// groupOf is the group that the address names, or one of the event that it names.
export const groupOf = (f: Filter): Group => groups.find((g) => g.key === f.event) ?? { key: f.event, name: f.event, events: [f.event] };

// asked is what the server is asked for.
export function asked(f: Filter): Record<string, string | string[]> {
  const g = groupOf(f);
  return {
    ...g.ask, event: g.events,
    target: f.target, session: f.session, user: f.user, since: f.since === "all" ? "" : f.since, until: f.until, text: f.text,
  };
}

// moment reads a time of the address; undefined: from the beginning, or now.
export function moment(said: string): number | undefined {
  const m = /^(\d+)([smhd])$/.exec(said);
  if (m) return Date.now() - Number(m[1]) * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[m[2] as "s" | "m" | "h" | "d"];
  const t = Date.parse(said);
  return Number.isNaN(t) ? undefined : t;
}

// belongs is whether a record is of the group that is chosen. The chains' own
// records are of no interest unless asked for.
export function belongs(f: Filter, r: TrailRecord): boolean {
  const chosen = groupOf(f).events;
  return chosen.length ? chosen.includes(r.event) : r.event !== "audit_chain_opened";
}

// passes is whether a record that came by the feed is one that the server would
// have given for the filter.
export function passes(f: Filter, r: TrailRecord): boolean {
  if (!belongs(f, r)) return false;
  if (f.target && text(r, "target") !== f.target) return false;
  if (f.session && text(r, "session_id") !== f.session) return false;
  if (f.user && text(r, "user_id") !== f.user) return false;
  const at = Date.parse(r.timestamp);
  const since = moment(f.since), until = moment(f.until);
  if (since !== undefined && at < since) return false;
  if (until !== undefined && at > until) return false;
  const words = f.text.toLowerCase();
  return !words || ["command_line", "target", "error"].some((name) => text(r, name).toLowerCase().includes(words));
}
