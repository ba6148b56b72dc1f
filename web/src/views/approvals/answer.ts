import { post, type Refusal } from "../../lib/api";
import type { Ticket } from "../../lib/types";

// A Choice is one answer that a person may give to a ticket. A key answers for once only.
export interface Choice { key: string; name: string; effect: "grant" | "deny"; scope: "once" | "session" | "until" | "always"; covers?: "call" | "prefix" | "tool" }

// choices are the answers that count: what the rule leaves open, and nothing
// for a session where the call belongs to none.
export function choices(t: Ticket): Choice[] {
  const all: Choice[] = [{ key: highRisk(t) ? "" : "y", name: "Allow once", effect: "grant", scope: "once" }];
  if (t.wide) all.push({ key: "", name: "Always allow this exact call", effect: "grant", scope: "always", covers: "call" }, { key: "", name: "Allow this exact call until…", effect: "grant", scope: "until", covers: "call" });
  const prefix = t.offers?.find((o) => o.scope === "always" && o.covers === "prefix");
  if (t.wide && prefix) all.push({ key: "", name: "Always allow " + prefix.calls, effect: "grant", scope: "always", covers: "prefix" });
  if (t.wide && t.session) all.push({ key: "", name: "Allow for the session, with any arguments", effect: "grant", scope: "session", covers: "tool" });
  all.push({ key: "n", name: "Deny", effect: "deny", scope: "once" });
  if (t.session) all.push({ key: "", name: "Deny for the session", effect: "deny", scope: "session" });
  return all;
}

// highRisk reports whether a call is so risky that no key allows it.
export const highRisk = (t: Ticket) => ((t.risk as { score?: number } | undefined)?.score ?? 0) >= 70;

export function settle(id: string, c: Choice, note: string, until?: string): Promise<Ticket> {
  return post<Ticket>("/approvals/" + encodeURIComponent(id), { effect: c.effect, scope: c.scope, covers: c.covers, note: note || undefined, until });
}

// said puts an answer into words.
export function said(effect: string, scope: string): string {
  const reach: Record<string, string> = { once: "once", session: "for the session", until: "until a set time", always: "always" };
  const verb = effect === "grant" ? "allowed" : effect === "deny" ? "denied" : effect;
  return effect === "deny" && scope === "once" ? verb : verb + " " + (reach[scope] ?? scope);
}

// settledBy says who was faster, where somebody answered the ticket elsewhere.
export function settledBy(e: Refusal): string {
  const a = (e.problem as { answer?: Ticket["answer"] }).answer;
  return a ? said(a.effect, a.scope) + " by " + a.by : e.problem.detail;
}
