// The catalog's graph, ready to be asked who is next to whom.
import type { Graph } from "../../lib/types";

export interface Neighbour { node: number; type: number; weight: number; outward: boolean }

export class Network {
  readonly place = new Map<string, number>();
  readonly degree: Uint32Array;
  readonly counts: number[]; // edges of each type
  #first: Uint32Array; // where the edges of a node begin in #edges
  #edges: Uint32Array;

  constructor(readonly graph: Graph) {
    const { nodes, edges } = graph;
    nodes.id.forEach((id, i) => this.place.set(id, i));
    const n = nodes.id.length;
    this.degree = new Uint32Array(n);
    this.counts = graph.types.map(() => 0);
    for (let e = 0; e < edges.from.length; e++) {
      this.degree[edges.from[e]!]!++;
      this.degree[edges.to[e]!]!++;
      this.counts[edges.type[e]!]!++;
    }
    this.#first = new Uint32Array(n + 1);
    for (let i = 0; i < n; i++) this.#first[i + 1] = this.#first[i]! + this.degree[i]!;
    this.#edges = new Uint32Array(this.#first[n]!);
    const next = this.#first.slice();
    for (let e = 0; e < edges.from.length; e++) {
      this.#edges[next[edges.from[e]!]!++] = e;
      this.#edges[next[edges.to[e]!]!++] = e;
    }
  }

  // around gives what a node is related to by the given types, heaviest first.
  around(node: number, types: ReadonlySet<number>): Neighbour[] {
    const { from, to, type, weight } = this.graph.edges;
    const out: Neighbour[] = [];
    for (let k = this.#first[node]!; k < this.#first[node + 1]!; k++) {
      const e = this.#edges[k]!;
      if (types.has(type[e]!)) out.push({ node: from[e] === node ? to[e]! : from[e]!, type: type[e]!, weight: weight[e]!, outward: from[e] === node });
    }
    return out.sort((a, b) => a.type - b.type || b.weight - a.weight || a.node - b.node);
  }

  // named gives the nodes whose name or id has the words, the shortest names first.
  named(words: string, most: number): number[] {
    const want = words.trim().toLowerCase();
    if (!want) return [];
    const { id, name } = this.graph.nodes;
    const out: number[] = [];
    for (let i = 0; i < id.length; i++) if (name[i]!.toLowerCase().includes(want) || id[i]!.toLowerCase().includes(want)) out.push(i);
    const rank = (i: number) => (name[i]!.toLowerCase() === want ? 0 : name[i]!.toLowerCase().startsWith(want) ? 1 : 2);
    return out.sort((a, b) => rank(a) - rank(b) || name[a]!.length - name[b]!.length || a - b).slice(0, most);
  }
}
