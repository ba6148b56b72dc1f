// What changed between two texts, word by word.
export interface Run { text: string; how: "same" | "added" | "removed" }

const most = 1500; // words of each that are compared one by one; a longer text is shown as a whole

export function compare(old: string, now: string): Run[] {
  const a = split(old), b = split(now);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const out: Run[] = [];
  const put = (text: string, how: Run["how"]) => {
    if (!text) return;
    const last = out[out.length - 1];
    if (last?.how === how) last.text += text;
    else out.push({ text, how });
  };
  put(a.slice(0, head).join(""), "same");
  const left = a.slice(head, a.length - tail), right = b.slice(head, b.length - tail);
  if (left.length > most || right.length > most) {
    put(left.join(""), "removed");
    put(right.join(""), "added");
  } else walk(left, right, put);
  put(a.slice(a.length - tail).join(""), "same");
  return joined(out);
}

// joined makes one change of several with nothing but blanks between them: a
// sentence that was written anew reads as one, not as every second word.
function joined(runs: Run[]): Run[] {
  const out: Run[] = [];
  for (let i = 0; i < runs.length;) {
    if (runs[i]!.how === "same") { out.push(runs[i++]!); continue; }
    let removed = "", added = "";
    for (; i < runs.length; i++) {
      const { how, text } = runs[i]!;
      const between = how === "same" && !text.trim() && i + 1 < runs.length;
      if (how === "same" && !between) break;
      if (how !== "added") removed += text;
      if (how !== "removed") added += text;
    }
    if (removed) out.push({ text: removed, how: "removed" });
    if (added) out.push({ text: added, how: "added" });
  }
  return out;
}

// Words, and what is between them, so that the joined parts are the text again.
const split = (text: string) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

// walk takes the longest common run of words: first how long it is from each
// place on, then along it.
function walk(a: string[], b: string[], put: (text: string, how: Run["how"]) => void) {
  const w = b.length + 1;
  const length = new Uint16Array((a.length + 1) * w);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      length[i * w + j] = a[i] === b[j] ? length[(i + 1) * w + j + 1]! + 1 : Math.max(length[(i + 1) * w + j]!, length[i * w + j + 1]!);
    }
  }
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { put(a[i]!, "same"); i++; j++; }
    else if (j === b.length || (i < a.length && length[(i + 1) * w + j]! >= length[i * w + j + 1]!)) put(a[i++]!, "removed");
    else put(b[j++]!, "added");
  }
}
