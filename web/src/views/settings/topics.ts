// Settings by topic: what people look for, in the order in which they do.
export const topics = ["Model", "Budget", "Safety", "Sources", "MCP servers", "Extensions", "Server", "Advanced"] as const;
export type Topic = (typeof topics)[number];

const budget = /^(chat\.(steps|mistakes|repeats|calls|rounds|requests|tokens|cost|maxTokens|promptTokens|condenseAt)|capabilities\.(maxTokens|budgetPolicy)|discovery\.\w*TokenBudget|limits\..*)$/;
const by: [RegExp, Topic][] = [
  [budget, "Budget"],
  [/^(model|providers)$|^chat\./, "Model"],
  [/^(policy|approval|sandbox|shell|audit)\./, "Safety"],
  [/^(catalog|skills|capabilities)\.|^databases$/, "Sources"],
  [/^mcp\./, "MCP servers"],
  [/^extensions\.|^hooks$/, "Extensions"],
  [/^(serve|jobs|results|trace)\.|^store$/, "Server"],
];

export const topicOf = (key: string): Topic => by.find(([keys]) => keys.test(key))?.[1] ?? "Advanced";
