import * as assert from "node:assert/strict";
import test from "node:test";
import { order, tableOf } from "./table";

test("a table is found in Markdown, with what is around it", () => {
  const t = tableOf("3 rows\n\n| id | name |\n|---:|---|\n| 1 | a \\| b |\n| 2 |  |\n\nmore");
  assert.deepEqual(t, { columns: ["id", "name"], rows: [["1", "a | b"], ["2", ""]], before: "3 rows", after: "more" });
});

test("a list of flat objects is a table", () => {
  assert.deepEqual(tableOf('[{"id":1,"name":null},{"id":2,"more":true}]'), {
    columns: ["id", "name", "more"], rows: [["1", "NULL", ""], ["2", "", "true"]], before: "", after: "",
  });
});

test("anything else is none", () => {
  for (const text of ["", "text", "| a |", "[]", '[{"a":{"b":1}}]', "[1]", "| a | b |\n|---|---|\n| 1 |", "[{"]) assert.equal(tableOf(text), null, text);
});

test("numbers are sorted by size, before texts; equal rows keep their order", () => {
  const rows = [["10"], ["9"], ["b"], ["1,000"], ["a10"], ["a9"], ["9"]];
  assert.deepEqual(order(rows, 0, false), [1, 6, 0, 3, 5, 4, 2]);
  assert.deepEqual(order(rows, 0, true), [2, 4, 5, 3, 0, 1, 6]);
});
