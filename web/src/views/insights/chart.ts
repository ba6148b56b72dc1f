import type uPlot from "uplot";
import { dateOf } from "../../lib/format";

// A Line is one series of a chart over days.
export interface Line {
  name: string;
  tone: string; // a colour of app.css, by its name
  values: (number | null)[]; // null: nothing is known of that day
  kind: "line" | "area" | "bars";
}

// A Chart is lines over the same days. Stacked ones stand on each other.
export interface Chart { days: string[]; lines: Line[]; format: (n: number) => string; stacked?: boolean; between?: string /* colours what lies between the first two */ }

// A colour is taken from the page at the moment of drawing: a canvas knows no
// variables, and the theme may have changed.
function colours(root: HTMLElement): (tone: string, alpha?: number) => string {
  const probe = document.createElement("span");
  return (tone, alpha = 1) => {
    probe.style.color = `var(--${tone})`;
    root.append(probe);
    const [r = 0, g = 0, b = 0] = (getComputedStyle(probe).color.match(/[\d.]+/g) ?? []).map(Number);
    probe.remove();
    return `rgba(${r}, ${g}, ${b}, ${alpha})`;
  };
}

const short = (seconds: number) => dateOf(seconds * 1000);

// dataOf gives what uPlot draws: days as seconds, and the lines, added up where
// they stand on each other. The last of a stack is drawn first, behind the others.
function dataOf(c: Chart): uPlot.AlignedData {
  const x = c.days.map((d) => Date.parse(d + "T00:00:00Z") / 1000);
  if (!c.stacked) return [x, ...c.lines.map((l) => l.values)];
  const sum = x.map(() => 0);
  const tops = c.lines.map((l) => l.values.map((v, i) => (sum[i]! += v ?? 0)));
  return [x, ...tops.toReversed()];
}

// draw makes the chart inside root. Whoever calls it destroys what it returns.
export function draw(plot: typeof uPlot, root: HTMLElement, c: Chart, width: number, height: number, over: (i: number | null) => void): uPlot {
  const colour = colours(root);
  const soft = colour("soft"), line = colour("line");
  const order = c.stacked ? c.lines.toReversed() : c.lines;
  const few = c.days.length <= 2;
  const known = (l: Line) => l.values.filter((v) => v !== null).length; // a line of few is hardly one
  const axis = { stroke: soft, font: "12px system-ui, sans-serif", grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return new plot({
    width, height, legend: { show: false }, padding: [8, 12, 0, 0],
    cursor: { y: false, drag: { setScale: false }, sync: { key: "days" }, points: { size: 7 } },
    scales: { x: { time: true, range: (_, a, b) => [a - (few ? 86_400 : 43_200), b + (few ? 86_400 : 43_200)] }, y: { range: (_, __, top) => [0, top > 0 ? top * 1.08 : 1] } },
    axes: [
      { ...axis, grid: { show: false }, space: 64, size: 28, incrs: [86_400, 172_800, 604_800, 1_209_600, 2_592_000], values: (_, at) => at.map(short) },
      { ...axis, size: 58, values: (_, at) => at.map((n) => c.format(n)) },
    ],
    series: [{}, ...order.map((l): uPlot.Series => ({
      label: l.name, stroke: colour(l.tone), width: l.kind === "bars" ? 0 : 2, spanGaps: false,
      fill: l.kind === "line" ? undefined : colour(l.tone, l.kind === "bars" ? 1 : 0.28),
      paths: l.kind === "bars" ? plot.paths.bars!({ size: [0.7, 22], radius: 0 }) : undefined,
      points: { show: l.kind !== "bars" && (few || known(l) < 20), size: known(l) < 4 ? 9 : 5, fill: known(l) < 4 ? colour(l.tone) : undefined },
    }))],
    bands: c.between ? [{ series: [1, 2], fill: colour(c.between, 0.12) }] : undefined,
    hooks: { setCursor: [(u) => over(u.cursor.idx ?? null)] },
  }, dataOf(c), root);
}
