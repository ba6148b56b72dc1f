import * as assert from "node:assert/strict";
import test from "node:test";
import { draft, rows, wrong } from "./schema";

const schema = {
  type: "object", required: ["path", "mode"],
  properties: {
    path: { type: "string", description: "where", maxLength: 10 }, mode: { enum: ["a", "b"], default: "b" }, many: { type: "array", items: { type: "object", properties: { deep: { type: "integer", minimum: 1 } } } },
    either: { anyOf: [{ type: "string" }, { type: "null" }] }, list: { type: ["string", "null"] }, ref: { $ref: "#/$defs/Thing" },
  },
};

test("a schema becomes rows", () => {
  const { rows: got, cut } = rows(schema);
  assert.deepEqual(got.map((r) => [r.name, r.type, r.required, r.deep, r.limits.join("; ")]), [
    ["path", "string", true, 0, "max length 10"], ["mode", "one of these", true, 0, 'one of "a", "b"; default "b"'], ["many", "list of object", false, 0, ""], ["many[].deep", "integer", false, 1, "at least 1"],
    ["either", "string or null", false, 0, ""], ["list", "string or null", false, 0, ""], ["ref", "Thing", false, 0, ""],
  ]);
  assert.equal(cut, false);
});

test("a schema from anywhere is bounded, and nothing in it is a surprise", () => {
  let deep: unknown = { type: "string" };
  for (let i = 0; i < 50; i++) deep = { type: "object", properties: { x: deep } };
  assert.equal(rows(deep).cut, true);
  assert.equal(rows({ properties: Object.fromEntries(Array.from({ length: 500 }, (_, i) => ["p" + i, {}])) }).cut, true);
  for (const odd of [null, undefined, "text", 3, [], { properties: 7 }, { properties: { a: null, b: "x", c: [] }, required: "a" }, { properties: { a: { enum: "no" } } }]) assert.ok(Array.isArray(rows(odd).rows));
});

test("a draft has what is required", () => {
  assert.deepEqual(JSON.parse(draft(schema)), { path: "", mode: "b" });
  assert.deepEqual(JSON.parse(draft({ required: ["n", "b", "o", "u", 7], properties: { n: { type: "integer" }, b: { type: "boolean" }, o: { type: "object" } } })), { n: 0, b: false, o: {}, u: null });
  assert.equal(draft("nonsense"), "{}");
});

test("what is plainly wrong is told before it is sent", () => {
  for (const [source, want] of [
    ['{"path": "a", "mode": "b"}', ""], ['{"mode": "b"}', "path is missing"], ['{"path": 3, "mode": "b"}', "path must be string"], ["[1]", "Arguments must be a JSON object: { … }"], ["null", "Arguments must be a JSON object: { … }"],
  ] as const) assert.equal(wrong(source, schema), want);
  assert.ok(wrong("{", schema).startsWith("Invalid JSON"));
  assert.equal(wrong('{"x": 1}', { additionalProperties: false }), "x is not a parameter");
  assert.equal(wrong("", undefined), "");
});
