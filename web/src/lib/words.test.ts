import * as assert from "node:assert/strict";
import test from "node:test";
import { told } from "./words";

const of = (code: string, detail: string) => told({ title: "", status: 400, code, detail });

test("the page does not speak of routes", () => {
  const model = "To send it to the model, put a space before it.";
  for (const [got, want] of [
    [of("unknown-command", "no command has the name /foo; GET /api/v1/complete lists what there is; to say it to the model put a blank or a second slash before it"), "There is no command /foo. Type / to list the commands. " + model],
    [of("unknown-command", "no command has the name /compat; did you mean /commit or /compact? to say it to the model put a blank or a second slash before it"), "There is no command /compat. Did you mean /commit or /compact? " + model],
    [of("not-here", "/cost is a word of the terminal; here it is GET /api/v1/sessions/{id}, whose head has usage and cost; to say it …"), "/cost works only in the terminal. The cost is shown below each turn. " + model],
    [of("not-here", "/other is a word of the terminal; here it is something else"), "/other works only in the terminal. Type / to list the commands. " + model],
    [of("not-found", 'there is no session "x"; GET /api/v1/sessions lists those there are'), 'There is no session "x".'],
    [of("bad", "there is no case to measure; save one in the playground, or with POST /api/v1/eval/cases"), "There is no case to measure; save one in the playground."],
    [of("bad", "find tool:nope: no capability has this id or name; see ken catalog list"), "Find tool:nope: no capability has this id or name; see ken catalog list."],
    [of("bad", "tier1TopK must be at most 50"), "tier1TopK must be at most 50."],
    [of("bad", "Is ken serve still running?"), "Is ken serve still running?"],
    [of("bad", ""), ""],
  ] as const) assert.equal(got, want);
});
