// A long change with its unchanged lines folded.
export interface Stretch { lines: string[]; hidden: boolean }

const long = 40; // lines of a change that is shown whole
const near = 3; // unchanged lines that are shown around a change

// folded splits a diff into stretches. Only unchanged lines are hidden, and only
// where that saves more than a few lines.
export function folded(text: string): Stretch[] {
  const lines = text.replace(/\n$/, "").split("\n");
  if (lines.length <= long) return [{ lines, hidden: false }];
  const out: Stretch[] = [];
  const show = (some: string[]) => {
    if (!some.length) return;
    const last = out.at(-1);
    if (last && !last.hidden) last.lines.push(...some);
    else out.push({ lines: [...some], hidden: false });
  };
  for (let i = 0; i < lines.length; ) {
    let end = i;
    while (end < lines.length && lines[end]!.startsWith(" ")) end++;
    if (end === i) { show([lines[i++]!]); continue; }
    const from = i === 0 ? 0 : i + near, to = end === lines.length ? end : end - near;
    if (to - from > near) {
      show(lines.slice(i, from));
      out.push({ lines: lines.slice(from, to), hidden: true });
      show(lines.slice(to, end));
    } else show(lines.slice(i, end));
    i = end;
  }
  return out;
}
