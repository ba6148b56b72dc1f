import * as assert from "node:assert/strict";
import test from "node:test";
import { topicOf } from "./topics";

test("each setting has the topic that people look under", () => {
  const want = {
    model: "Model", providers: "Model", "chat.effort": "Model", "chat.cost": "Budget", "limits.timeout": "Budget", "discovery.tier1TokenBudget": "Budget",
    "policy.rules": "Safety", "sandbox.memory": "Safety", "approval.wait": "Safety", "catalog.sources": "Sources", databases: "Sources",
    "mcp.servers": "MCP servers", hooks: "Extensions", "serve.addr": "Server", store: "Server", "discovery.reader": "Advanced", "experiment.name": "Advanced",
  };
  for (const [key, topic] of Object.entries(want)) assert.equal(topicOf(key), topic, key);
});
