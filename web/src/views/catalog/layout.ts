// Where the capabilities stand in the picture. It is the same picture for the
// same catalog, and takes time in proportion to what is drawn: categories are
// discs on rings around the largest, and in a disc what is related to most is
// in the middle of a sunflower's spiral.

export interface Disc { category: number; x: number; y: number; r: number; size: number }

const golden = Math.PI * (3 - Math.sqrt(5));
const step = 10; // between neighbours in a disc
const gap = 14; // between discs

export function lay(category: number[], categories: number, degree: ArrayLike<number>): { x: Float64Array; y: Float64Array; discs: Disc[] } {
  const members: number[][] = Array.from({ length: categories + 1 }, () => []);
  category.forEach((c, i) => members[c >= 0 && c < categories ? c : categories]!.push(i));
  const discs: Disc[] = members.map((m, c) => ({ category: c, x: 0, y: 0, r: radius(m.length), size: m.length })).filter((d) => d.size > 0);
  discs.sort((a, b) => b.size - a.size || a.category - b.category);
  ring(discs);
  const x = new Float64Array(category.length), y = new Float64Array(category.length);
  for (const d of discs) {
    const inside = members[d.category]!;
    inside.sort((a, b) => degree[b]! - degree[a]! || a - b);
    inside.forEach((node, i) => {
      const r = inside.length === 1 ? 0 : step * Math.sqrt(i + 0.5);
      x[node] = d.x + r * Math.cos(i * golden);
      y[node] = d.y + r * Math.sin(i * golden);
    });
  }
  return { x, y, discs };
}

const radius = (n: number) => step * Math.sqrt(n) + gap / 2;

// ring puts the largest disc in the middle and the others, in their order,
// around it, on as many rings as they need.
function ring(discs: Disc[]) {
  let outer = discs[0]?.r ?? 0;
  for (let i = 1; i < discs.length;) {
    const at = outer + discs[i]!.r + gap;
    const widths: number[] = [];
    let used = 0;
    for (let j = i; j < discs.length; j++) {
      const w = 2 * Math.asin(Math.min(1, (discs[j]!.r + gap / 2) / at));
      if (widths.length && used + w > 2 * Math.PI) break;
      widths.push(w);
      used += w;
    }
    const spare = Math.max(0, 2 * Math.PI - used) / widths.length;
    let angle = -Math.PI / 2 + i * golden; // so that rings do not begin in a line
    widths.forEach((w, k) => {
      angle += (w + spare) / 2;
      discs[i + k]!.x = at * Math.cos(angle);
      discs[i + k]!.y = at * Math.sin(angle);
      angle += (w + spare) / 2;
    });
    outer = at + discs[i]!.r;
    i += widths.length;
  }
}
