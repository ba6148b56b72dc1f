// Tables in what a call returned, and their order.
import { named } from "./odd";

export interface Table { columns: string[]; rows: string[][]; before: string; after: string }

const most = 2000; // rows that are drawn

// tableOf finds a table in a text: rows that a database returned as Markdown or as
// a JSON list of flat objects. Null: it has none, or one that is too large to draw.
export function tableOf(text: string): Table | null {
  return fromMarkdown(text) ?? fromJSON(text);
}

// fromMarkdown reads the first table of a text: a line of names, a line of dashes, and
// the rows.
function fromMarkdown(text: string): Table | null {
  const lines = text.split("\n");
  const at = lines.findIndex((l, i) => i > 0 && /^\|(\s*:?-+:?\s*\|)+\s*$/.test(l) && lines[i - 1]!.startsWith("|"));
  if (at < 1) return null;
  const columns = cells(lines[at - 1]!);
  const rows: string[][] = [];
  let end = at + 1;
  for (; end < lines.length && lines[end]!.startsWith("|"); end++) rows.push(cells(lines[end]!));
  if (rows.length > most || rows.some((r) => r.length !== columns.length)) return null;
  return { columns, rows, before: lines.slice(0, at - 1).join("\n").trim(), after: lines.slice(end).join("\n").trim() };
}

// cells takes a row apart. A bar after a backslash belongs to a cell.
function cells(line: string): string[] {
  const out: string[] = [];
  let cell = "";
  for (let i = 1; i < line.length; i++) {
    if (line[i] === "\\" && (line[i + 1] === "|" || line[i + 1] === "\\")) cell += line[++i];
    else if (line[i] === "|") { out.push(cell.trim()); cell = ""; } else cell += line[i];
  }
  if (cell.trim() !== "") out.push(cell.trim());
  return out;
}

function fromJSON(text: string): Table | null {
  if (!/^\s*\[\s*\{/.test(text)) return null;
  let list: unknown;
  try { list = JSON.parse(text); } catch { return null; }
  if (!Array.isArray(list) || list.length === 0 || list.length > most) return null;
  const columns: string[] = [];
  for (const row of list) {
    if (row === null || typeof row !== "object" || Array.isArray(row)) return null;
    for (const [key, value] of Object.entries(row)) {
      if (value !== null && typeof value === "object") return null;
      if (!columns.includes(key)) columns.push(key);
    }
    if (columns.length > 50) return null;
  }
  const rows = (list as Record<string, unknown>[]).map((r) => columns.map((c) => (!(c in r) ? "" : r[c] === null ? "NULL" : String(r[c]))));
  return { columns, rows, before: "", after: "" };
}

// order returns the places of rows in the order of a column: numbers by size, before
// texts, and texts as people sort them. Rows that are equal keep their order.
export function order(rows: readonly (readonly string[])[], column: number, falling: boolean): number[] {
  const key = (i: number) => rows[i]![column] ?? "";
  const number = (s: string) => (/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(s.replaceAll(",", "")) ? Number(s.replaceAll(",", "")) : NaN);
  const texts = new Intl.Collator(undefined, { numeric: true });
  const compare = (a: string, b: string) => {
    const x = number(a), y = number(b);
    if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
    return Number.isNaN(x) ? texts.compare(a, b) : x - y;
  };
  return rows.map((_, i) => i).sort((i, j) => (falling ? -1 : 1) * compare(key(i), key(j)));
}

// shown is what is drawn of a cell: characters that cannot be seen have their names.
export const shown = (cell: string): string => named(cell);
