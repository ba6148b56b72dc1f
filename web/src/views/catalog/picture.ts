// Draws the network with sigma. Dependencies are part of the picture. The other
// relations are far too many for that: they are lines over it, of the node that
// is looked at, or of what is in view when it is near enough.
import Graphology from "graphology";
import Sigma from "sigma";
import { short, write, type Dot as Spot, type Want } from "./labels";
import { lay, type Disc } from "./layout";
import type { Network } from "./network";
import { paint } from "./say";

export interface Told { hover(node: number | null): void; pick(node: number | null): void; near(lines: number): void; cover(): HTMLElement | undefined /* what lies over the picture */ }

const nearRatio = 0.3; // of the camera: nearer than this, relations in view are drawn
const growth = 0.75; // of dots, with the picture
const nearSize = 10; // px of a dot that is looked at
const mostLines = 2500;
const narrow = 600; // px of a picture in which every name that has room is written
const mostNamed = 40; // neighbours of the node that is looked at whose names are wanted
const categoryFont = "650 12px system-ui, sans-serif", nodeFont = "500 12px system-ui, sans-serif", hoverFont = "600 13px system-ui, sans-serif";

type Dot = { key?: string; x: number; y: number; size: number; label?: string | null; color?: string };
type Name = Want & { font: string; colour: string };

type Shades = Record<"ink" | "soft" | "line" | "card" | "accent" | "paper", string> & { kinds: string[]; faint: string };

export class Picture {
  readonly discs: Disc[];
  #sigma: Sigma;
  #graph = new Graphology({ type: "directed", multi: true });
  #shades: Shades;
  #shown: ReadonlySet<number>;
  #hovered: number | null = null;
  #picked: number | null = null;
  #bright: Set<number> | null = null; // the node that is looked at, and what is next to it
  #lines: CanvasRenderingContext2D;
  #view: number[] = []; // edges between nodes in view
  #named: Dot[] = []; // that should have their names
  #sized = new ResizeObserver(() => this.#sigma.scheduleRender());
  #settling: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly network: Network, readonly element: HTMLElement, types: ReadonlySet<number>, readonly tell: Told, readonly still: boolean) {
    const { nodes, edges, types: names } = network.graph;
    const at = lay(nodes.category, network.graph.categories.length, network.degree);
    this.discs = at.discs;
    this.#shown = types;
    this.#shades = shades(element, network.graph.kinds);
    for (let i = 0; i < nodes.id.length; i++) {
      this.#graph.addNode(i, { x: at.x[i], y: -at.y[i]!, size: 5.5 + Math.min(4, Math.log2(1 + network.degree[i]!) * 0.6), label: nodes.name[i] });
    }
    const depends = names.indexOf("DEPENDS_ON");
    for (let e = 0; e < edges.from.length; e++) if (edges.type[e] === depends) this.#graph.addEdgeWithKey(e, edges.from[e], edges.to[e]);
    this.#sigma = new Sigma(this.#graph, element, {
      allowInvalidContainer: true, zIndex: true, stagePadding: 24, minCameraRatio: 0.06, maxCameraRatio: 1.4,
      itemSizesReference: "positions", zoomToSizeRatioFunction: (ratio) => ratio ** growth, // dots grow with the picture, but slower: near, there is room for names
      // Sigma says which dots are large enough for a name; those that have room are written afterwards.
      labelRenderedSizeThreshold: 7, labelDensity: element.clientWidth < narrow ? 4 : 1.2, labelGridCellSize: 120, defaultDrawNodeLabel: (_, data) => { this.#named.push(data); },
      defaultEdgeType: "line", minEdgeThickness: 0.8, hideLabelsOnMove: true,
      zoomDuration: still ? 0 : 200, inertiaDuration: still ? 0 : 200, doubleClickZoomingDuration: still ? 0 : 200,
      nodeReducer: (n, data) => this.#node(Number(n), data),
      edgeReducer: (e, data) => this.#edge(Number(e), data),
      defaultDrawNodeHover: (context, data) => this.#label(context, data),
    });
    this.#lines = this.#overlay();
    this.#listen();
  }

  #listen() {
    this.#sigma.on("enterNode", ({ node }) => this.#hover(Number(node)));
    this.#sigma.on("leaveNode", () => this.#hover(null));
    this.#sigma.on("clickNode", ({ node }) => this.tell.pick(Number(node)));
    this.#sigma.on("clickStage", () => this.tell.pick(null));
    this.#sigma.on("beforeRender", () => { this.#named = []; });
    this.#sigma.on("afterRender", () => { this.#draw(); this.#write(); });
    this.#sigma.getCamera().on("updated", () => this.#settle());
    this.#sized.observe(this.element); // sigma looks at the window alone
  }

  #overlay(): CanvasRenderingContext2D {
    this.#sigma.createCanvasContext("relations", { style: { pointerEvents: "none" } });
    const { nodes, relations } = this.#sigma.getCanvases();
    nodes!.before(relations!);
    this.#sigma.resize(true);
    return relations!.getContext("2d")!;
  }

  #hover(node: number | null) {
    this.#hovered = node;
    this.element.classList.toggle("over", node !== null);
    this.#look();
    this.tell.hover(node);
  }

  pick(node: number | null) {
    this.#picked = node;
    this.#look();
  }

  show(types: ReadonlySet<number>) {
    this.#shown = types;
    this.#look();
    this.#settle();
  }

  // fly brings a node into the middle.
  fly(node: number, still = this.still) {
    const to = this.#sigma.getNodeDisplayData(String(node));
    if (!to) return;
    // So near that dots have names, whether there are many or few.
    const near = Math.max(0.08, Math.min(0.8, (this.#sigma.scaleSize(to.size, 1) / nearSize) ** (1 / growth)));
    const state = { x: to.x, y: to.y, ratio: Math.min(this.#sigma.getCamera().ratio, near), angle: 0 };
    if (still) this.#sigma.getCamera().setState(state);
    else void this.#sigma.getCamera().animate(state, { duration: 500, easing: "quadraticInOut" });
  }

  zoom(by: number) {
    const camera = this.#sigma.getCamera();
    const ratio = camera.getBoundedRatio(camera.ratio * by);
    if (this.still) camera.setState({ ratio });
    else void camera.animate({ ratio }, { duration: 200 });
  }

  pan(x: number, y: number) {
    const camera = this.#sigma.getCamera();
    camera.setState({ x: camera.x + x * camera.ratio, y: camera.y + y * camera.ratio });
  }

  whole() {
    if (this.still) this.#sigma.getCamera().setState({ x: 0.5, y: 0.5, ratio: 1, angle: 0 });
    else void this.#sigma.getCamera().animatedReset({ duration: 300 });
  }

  recolour() {
    this.#shades = shades(this.element, this.network.graph.kinds);
    this.#sigma.refresh({ skipIndexation: true });
  }

  kill() {
    clearTimeout(this.#settling);
    this.#sized.disconnect();
    this.#sigma.kill();
  }

  #look() {
    const at = this.#hovered ?? this.#picked;
    this.#bright = at === null ? null : new Set([at, ...this.network.around(at, this.#shown).map((n) => n.node)]);
    this.#sigma.refresh({ skipIndexation: true });
  }

  #node(i: number, data: Record<string, unknown>) {
    const kind = this.#shades.kinds[this.network.graph.nodes.kind[i]!] ?? this.#shades.soft;
    const picked = i === this.#picked || i === this.#hovered;
    if (this.#bright && !this.#bright.has(i)) return { ...data, color: this.#shades.faint, label: null, zIndex: 0 };
    return { ...data, color: kind, zIndex: this.#bright ? 2 : 1, highlighted: picked, forceLabel: picked || (this.#bright !== null && this.#bright.size <= mostNamed) };
  }

  #edge(e: number, data: Record<string, unknown>) {
    const { from, to, type } = this.network.graph.edges;
    const at = this.#hovered ?? this.#picked;
    const own = at !== null && (from[e] === at || to[e] === at);
    return { ...data, hidden: !this.#shown.has(type[e]!) || (at !== null && !own), color: own ? this.#shades.accent : this.#shades.line, size: own ? 3 : 1.5, zIndex: own ? 2 : 0 };
  }

  // settle looks, when the camera rests, for relations between what is in view.
  #settle() {
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => {
      this.#view = [];
      if (this.#sigma.getCamera().ratio < nearRatio) {
        const { from, to, type } = this.network.graph.edges;
        const { width, height } = this.#sigma.getDimensions();
        const inside = Array.from({ length: this.network.graph.nodes.id.length }, (_, i) => {
          const p = this.#at(i);
          return p.x > 0 && p.y > 0 && p.x < width && p.y < height;
        });
        const depends = this.network.graph.types.indexOf("DEPENDS_ON");
        for (let e = 0; e < from.length && this.#view.length < mostLines; e++) {
          if (type[e] !== depends && this.#shown.has(type[e]!) && inside[from[e]!] && inside[to[e]!]) this.#view.push(e);
        }
      }
      this.tell.near(this.#view.length);
      this.#draw();
    }, 120);
  }

  #at(node: number) {
    const d = this.#sigma.getNodeDisplayData(String(node))!;
    return this.#sigma.framedGraphToViewport(d);
  }

  #draw() {
    const c = this.#lines;
    if (!c) return; // the first picture comes before there is a place for lines
    const { width, height } = this.#sigma.getDimensions();
    c.clearRect(0, 0, width, height);
    const { from, to } = this.network.graph.edges;
    const at = this.#hovered ?? this.#picked;
    c.lineWidth = 1;
    if (this.#view.length) {
      c.strokeStyle = this.#shades.line;
      c.beginPath();
      for (const e of this.#view) this.#line(from[e]!, to[e]!);
      c.stroke();
    }
    if (at === null) return;
    c.strokeStyle = this.#shades.accent;
    c.globalAlpha = 0.7;
    c.beginPath();
    for (const n of this.network.around(at, this.#shown)) this.#line(at, n.node);
    c.stroke();
    c.globalAlpha = 1;
  }

  // write writes the names for which there is room: those of the node that is
  // looked at and its neighbours, of categories, and of the largest dots.
  #write() {
    const c = this.#sigma.getCanvases().labels!.getContext("2d")!;
    const { width, height } = this.#sigma.getDimensions();
    const at = this.#hovered ?? this.#picked;
    const dots = this.#dots(c).sort((a, b) => Number(b.near) - Number(a.near) || b.size - a.size);
    const wants: Name[] = [...this.#covered(), ...(at === null ? [...this.#categories(c), ...dots] : [...this.#reserved(c, at), ...dots, ...this.#categories(c)])];
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.lineJoin = "round";
    c.lineWidth = 4;
    c.strokeStyle = this.#shades.paper;
    for (const { want, x, y } of write(wants, width, height, this.#named.length ? this.#spots(width, height) : [])) {
      c.font = want.font;
      c.fillStyle = want.colour;
      c.strokeText(want.text, x, y); // so that it can be read over dots
      c.fillText(want.text, x, y);
    }
    c.textAlign = "start";
    c.textBaseline = "alphabetic";
  }

  #dots(c: CanvasRenderingContext2D) {
    c.font = nodeFont;
    return this.#named.filter((d) => d.label && Number(d.key) !== this.#hovered && Number(d.key) !== this.#picked).map((d) => {
      const text = short(d.label!, 28), w = c.measureText(text).width;
      const places: [number, number][] = [[d.x, d.y + d.size + 9], [d.x, d.y - d.size - 9], [d.x + d.size + 5 + w / 2, d.y], [d.x - d.size - 5 - w / 2, d.y]];
      return { text, width: w, height: 13, places, font: nodeFont, colour: this.#shades.ink, size: d.size, near: !!this.#bright?.has(Number(d.key)), over: !!this.#bright?.has(Number(d.key)) };
    });
  }

  // spots are the dots in view, a little smaller than they are: a name may touch one.
  #spots(width: number, height: number): Spot[] {
    const out: Spot[] = [];
    for (let i = 0; i < this.network.graph.nodes.id.length; i++) {
      const { x, y } = this.#at(i);
      if (x > 0 && y > 0 && x < width && y < height) out.push({ x, y, r: 0.6 * this.#sigma.scaleSize(this.#sigma.getNodeDisplayData(String(i))!.size) });
    }
    return out;
  }

  // covered keeps the place of what lies over the picture.
  #covered(): Name[] {
    const over = this.tell.cover()?.getBoundingClientRect(), stage = this.element.getBoundingClientRect();
    if (!over) return [];
    return [{ text: "", width: over.width, height: over.height, places: [[over.x - stage.x + over.width / 2, over.y - stage.y + over.height / 2]], font: nodeFont, colour: this.#shades.ink, over: true }];
  }

  // reserved keeps the place of the name that is over the picture.
  #reserved(c: CanvasRenderingContext2D, node: number): Name[] {
    const p = this.#at(node), size = this.#sigma.scaleSize(this.#sigma.getNodeDisplayData(String(node))!.size);
    c.font = hoverFont;
    const width = c.measureText(short(this.network.graph.nodes.name[node]!, 60)).width + 10;
    return [{ text: "", width, height: 24, places: [[p.x + size + 3 + width / 2, p.y]], font: hoverFont, colour: this.#shades.ink, over: true }];
  }

  // categories are named in the middle of their discs, or above them when they
  // are near and their dots have names.
  #categories(c: CanvasRenderingContext2D): Name[] {
    c.font = categoryFont;
    const wide = Math.min(150, this.#sigma.getDimensions().width / 4);
    const out: Name[] = [];
    for (const d of this.discs) {
      const p = this.#sigma.graphToViewport({ x: d.x, y: -d.y }), edge = this.#sigma.graphToViewport({ x: d.x + d.r, y: -d.y });
      const r = Math.hypot(edge.x - p.x, edge.y - p.y);
      if (r < 18) break; // the largest come first
      const name = this.network.graph.categories[d.category] || "no category";
      const text = short(name, Math.max(8, Math.floor((name.length * Math.max(wide, 2.2 * r)) / c.measureText(name).width)));
      const places: [number, number][] = r < 90 && d.size > 40 ? [[p.x, p.y]] : [[p.x, p.y - r - 6], [p.x, p.y + r + 6]]; // dots so small are a texture
      out.push({ text, width: c.measureText(text).width, height: 15, places, font: categoryFont, colour: this.#shades.soft, over: true });
    }
    return out;
  }

  #line(a: number, b: number) {
    const p = this.#at(a), q = this.#at(b);
    this.#lines.moveTo(p.x, p.y);
    this.#lines.lineTo(q.x, q.y);
  }

  #label(context: CanvasRenderingContext2D, data: Dot) {
    context.beginPath();
    context.arc(data.x, data.y, data.size + 3, 0, 2 * Math.PI);
    context.strokeStyle = this.#shades.ink;
    context.lineWidth = 2;
    context.stroke();
    context.beginPath();
    context.arc(data.x, data.y, data.size, 0, 2 * Math.PI);
    context.fillStyle = data.color ?? this.#shades.ink;
    context.fill();
    if (!data.label) return;
    const text = short(data.label, 60);
    context.font = hoverFont;
    const x = data.x + data.size + 8, w = context.measureText(text).width;
    context.fillStyle = this.#shades.card;
    context.strokeStyle = this.#shades.line;
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(x - 5, data.y - 12, w + 10, 24, 6);
    context.fill();
    context.stroke();
    context.fillStyle = this.#shades.ink;
    context.fillText(text, x, data.y + 4.5);
  }
}

// The page's colours are named by the style sheet and depend on the theme; what
// they are now, only an element can say.
function shades(near: HTMLElement, kinds: string[]): Shades {
  const probe = near.appendChild(document.createElement("i"));
  const read = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const mix = (name: string, share: number) => {
    const a = numbers(read(name)), b = numbers(read("--paper"));
    return `rgb(${a.map((v, i) => Math.round(v * share + b[i]! * (1 - share))).join(",")})`;
  };
  const out = { ink: read("--ink"), soft: read("--soft"), line: mix("--soft", 0.4), card: read("--card"), accent: read("--accent"), paper: read("--paper"), kinds: kinds.map((k) => read(paint(k))), faint: mix("--soft", 0.32) };
  probe.remove();
  return out;
}
const numbers = (rgb: string) => (rgb.match(/\d+(\.\d+)?/g) ?? []).slice(0, 3).map(Number);

// drawable says whether this browser can draw the picture at all.
export function drawable(): boolean {
  const canvas = document.createElement("canvas");
  return !!(canvas.getContext("webgl2") ?? canvas.getContext("webgl"));
}
