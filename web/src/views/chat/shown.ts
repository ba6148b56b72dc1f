// What was shown of each capability. The same one may be shown as a line and in
// full; it stands there once, with what each takes.
import type { Found, Piece } from "../../lib/types";

export type Tier = "full" | "cards" | "brief";
export interface ShownAs { tier: Tier; tokens: number; text: string }
export interface Shown { id: string; score: number; why: string[]; as: ShownAs[] }

const order: Tier[] = ["full", "cards", "brief"];

export function shownOf(found: Pick<Found, "briefs" | "cards" | "fulls">): Shown[] {
  const all = new Map<string, Shown>();
  const tiers: Record<Tier, Piece[] | undefined> = { full: found.fulls, cards: found.cards, brief: found.briefs };
  for (const tier of order) {
    for (const p of tiers[tier] ?? []) {
      const one = all.get(p.id) ?? { id: p.id, score: 0, why: [], as: [] };
      one.score = Math.max(one.score, p.score);
      one.why = [...new Set([...one.why, ...(p.why ?? [])])];
      one.as.push({ tier, tokens: p.tokens, text: p.text });
      all.set(p.id, one);
    }
  }
  return [...all.values()];
}

// counted says how many were shown of each tier, and of none where there are none.
export function counted(list: Shown[]): { tier: Tier; n: number }[] {
  return order.map((tier) => ({ tier, n: list.filter((s) => s.as.some((a) => a.tier === tier)).length })).filter((t) => t.n);
}
