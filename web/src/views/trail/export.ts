import { get } from "../../lib/api";
import type { TrailPage, TrailRecord } from "../../lib/types";
import { asked, belongs, type Filter } from "./filter";

export const mostExported = 10_000;

// collect reads the records that a filter leaves, newest first, up to the most that
// a file gets. more says whether there are others.
export async function collect(f: Filter): Promise<{ records: TrailRecord[]; more: boolean }> {
  const records: TrailRecord[] = [];
  for (let older = ""; ; ) {
    const page = await get<TrailPage>("/audit", { ...asked(f), older, limit: 200 });
    records.push(...page.records.filter((r) => belongs(f, r)));
    older = page.older ?? "";
    if (!older || records.length >= mostExported) return { records: records.slice(0, mostExported), more: !!older || records.length > mostExported };
  }
}

// save has the browser store records as a file with one in each line.
export function save(records: TrailRecord[], name: string) {
  const at = URL.createObjectURL(new Blob(records.map((r) => JSON.stringify(r) + "\n"), { type: "application/x-ndjson" }));
  const a = document.createElement("a");
  [a.href, a.download] = [at, name];
  a.click();
  setTimeout(() => URL.revokeObjectURL(at), 10_000);
}
