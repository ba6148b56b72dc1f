// Reads one call as JSON from standard input, writes one JSON text.
//
// The call is {"action": "count", "arguments": {...}}. The arguments were checked
// against the schema in commands.yaml. An exit status other than 0 makes the call
// fail; what was written to standard error explains it.

import { readFileSync } from "node:fs";

const actions = {
  count({ text, most }) {
    const counts = new Map();
    for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) {
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    const list = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    return { words: list.slice(0, most).map(([word, count]) => ({ word, count })), different: counts.size };
  },
};

const call = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(actions[call.action](call.arguments)));
