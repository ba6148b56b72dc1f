// Whatever a component draws may have come from outside: what a model, a tool or
// a card said, a name, a title. So that no view has to think of it, and none can
// forget it, the build puts drawn() of lib/odd around every value that stands in
// the markup as text, or in an attribute that people read.
import { parse, type PreprocessorGroup } from "svelte/compiler";

const attributes = new Set(["alt", "aria-description", "aria-label", "aria-valuetext", "label", "placeholder", "title"]);

type Node = { type: string; start: number; end: number; name?: string; [more: string]: unknown };
const isNode = (v: unknown): v is Node => typeof v === "object" && v !== null && typeof (v as Node).type === "string";

// naming gives the source of a component with drawn() where it belongs. What a
// field holds is the person's to change and stays as it is.
export function naming(source: string): string {
  const root = parse(source, { modern: true });
  const edits: [at: number, text: string][] = [];
  const wrap = (tag: Node) => {
    const e = tag.expression as Node;
    if (e.type !== "Literal") edits.push([e.start, "drawn_("], [e.end, ")"]);
  };
  const attribute = (a: Node) => {
    if (a.type !== "Attribute" || !attributes.has(a.name!) || a.value === true) return;
    for (const v of [a.value].flat() as Node[]) if (v.type === "ExpressionTag") wrap(v);
    if (source[a.start] === "{") edits.push([a.start, a.name + "="]); // {title}
  };
  const visit = (node: Node) => {
    if (node.type === "RegularElement" && node.name === "textarea") return;
    if (node.type === "Fragment") for (const n of node.nodes as Node[]) if (n.type === "ExpressionTag") wrap(n);
    if (node.type === "RegularElement" || node.type === "SvelteElement") (node.attributes as Node[]).forEach(attribute);
    for (const value of Object.values(node)) for (const one of Array.isArray(value) ? value : [value]) if (isNode(one)) visit(one);
  };
  visit(root.fragment as unknown as Node);
  if (!edits.length) return source;
  const line = 'import { drawn as drawn_ } from "/src/lib/odd.ts";';
  const script = (root.instance ?? root.module) as unknown as { content: Node } | null;
  edits.push(script ? [script.content.start, line] : [0, `<script lang="ts">${line}</script>`]);
  let out = source;
  for (const [at, text] of edits.sort((a, b) => b[0] - a[0])) out = out.slice(0, at) + text + out.slice(at);
  return out;
}

export const namer: PreprocessorGroup = { name: "naming", markup: ({ content }) => ({ code: naming(content) }) };
