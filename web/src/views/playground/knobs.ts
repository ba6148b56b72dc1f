// The settings that can be moved here: what each means, and within what.
export type Value = number | boolean | string;
export type Values = Record<string, Value>;

export interface Knob { key: string; name: string; about: string; section: string; min: number; max: number; step: number }

export const groups: { name: string; knobs: Knob[] }[] = [
  { name: "Token budgets", knobs: [
    budget("totalTokenBudget", "Total", "Maximum tokens for everything.", 6000),
    budget("tier0TokenBudget", "Map", "Tokens for the category map.", 1000),
    budget("tier1TokenBudget", "Briefs", "Tokens for one-line entries.", 3000),
    budget("tier2TokenBudget", "In full", "Tokens for full schemas and texts.", 6000),
    { ...budget("maxTokens", "Cards", "Tokens for cards whose triggers match.", 4000), section: "capabilities" },
  ] },
  { name: "How many", knobs: [
    number("tier1TopK", "Briefs", "Number of one-line entries.", 0, 20, 1),
    number("tier2TopK", "In full", "Number of entries shown in full.", 0, 10, 1),
    number("stickyTopK", "Sticky", "Additional lines: dependencies, recently used and pinned entries.", 0, 10, 1),
  ] },
  { name: "Thresholds", knobs: [
    number("tier1MinRelevance", "Any match", "If the probability of a match is lower, nothing is shown.", 0, 1, 0.01),
    number("tier1TailRelevance", "Briefs after the first", "A capability with a lower match score gets no line.", 0, 1, 0.01),
    number("tier2MinRelevance", "In full, after the first", "A capability with a lower match score is not shown in full.", 0, 1, 0.01),
  ] },
  { name: "Boosts", knobs: [
    number("useGraphReranking", "Graph reranking", "Raises capabilities related to the best hits.", 0, 1, 1),
    number("graphBoostFactor", "Graph boost", "Maximum boost from a relation.", 0, 1, 0.01),
    { ...number("learnedWeight", "Learned weight", "Weight of earlier use: 0 none, 1 as learned.", 0, 10, 0.1), section: "" },
  ] },
];

function number(key: string, name: string, about: string, min: number, max: number, step: number): Knob {
  return { key, name, about, section: "discovery", min, max, step };
}
function budget(key: string, name: string, about: string, max: number): Knob {
  return number(key, name, about, 0, max, 10);
}

// unknown makes a knob of a setting that this page was not told about.
export function unknown(key: string, value: Value): Knob {
  const whole = typeof value !== "number" || Number.isInteger(value);
  const top = typeof value === "number" && (value > 1 || whole) ? Math.max(10, value * 4) : 1;
  return number(key, key, "A setting of this server.", 0, top, whole ? 1 : 0.01);
}

// yaml writes what was changed as it would stand in ken.yaml.
export function yaml(changed: Values): string {
  const known = new Map(groups.flatMap((g) => g.knobs).map((k) => [k.key, k]));
  const sections = new Map<string, string[]>();
  for (const [key, value] of Object.entries(changed)) {
    const section = known.get(key)?.section ?? "discovery";
    const line = `${key}: ${typeof value === "string" ? JSON.stringify(value) : value}`;
    sections.set(section, [...(sections.get(section) ?? []), line]);
  }
  return [...sections].map(([section, lines]) => section ? section + ":\n" + lines.map((l) => "  " + l + "\n").join("") : lines.map((l) => "# " + l + " (can be tried here only)\n").join("")).join("");
}
