// What an evaluation says, as far as it is drawn. A mean over nothing is null.
type Mean = number | null;
export interface Measured {
  n: number; "ndcg@5": Mean; "recall@1": Mean; "recall@5": Mean; mrr: Mean;
  abstain?: { oos_rate: Mean; in_scope_rate: Mean }; oos_n?: number; p50_us?: Mean;
  problems?: { message: string }[];
  each: { id: string; query: string; gold: string[]; hits: { id: string; score: number }[]; abstained: boolean; "ndcg@5": number; "recall@5": number; mrr: number }[];
}
