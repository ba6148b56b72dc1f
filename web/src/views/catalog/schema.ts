// A JSON schema as rows that people can read, and as a first draft of arguments.
export interface Row { name: string; type: string; required: boolean; about: string; limits: string[]; deep: number }

type Schema = Record<string, unknown>;
const isObject = (v: unknown): v is Schema => typeof v === "object" && v !== null && !Array.isArray(v);

const deepest = 4;
const mostRows = 200;

// rows gives one row for each property, those of objects inside after them. A
// schema may come from anywhere, so depth and number are bounded; cut says that
// something was left out.
export function rows(schema: unknown): { rows: Row[]; cut: boolean } {
  const out: Row[] = [];
  let cut = false;
  const walk = (s: unknown, prefix: string, deep: number) => {
    if (!isObject(s) || !isObject(s.properties)) return;
    const required = Array.isArray(s.required) ? s.required : [];
    for (const [name, of] of Object.entries(s.properties)) {
      if (out.length >= mostRows || deep > deepest) { cut = true; return; }
      const p = isObject(of) ? of : {};
      const inside = isObject(p.items) ? p.items : p;
      out.push({ name: prefix + name, type: typeOf(p), required: required.includes(name), about: text(p.description ?? p.title), limits: limits(p), deep });
      walk(inside, prefix + name + (inside === p ? "." : "[]."), deep + 1);
    }
  };
  walk(schema, "", 0);
  return { rows: out, cut };
}

const text = (v: unknown) => (typeof v === "string" ? v : "");

function typeOf(p: Schema): string {
  if (typeof p.$ref === "string") return p.$ref.split("/").pop() ?? "";
  if (Array.isArray(p.type)) return p.type.join(" or ");
  if (p.type === "array") return isObject(p.items) ? "list of " + (typeOf(p.items) || "anything") : "list";
  if (typeof p.type === "string") return p.type;
  const choice = p.anyOf ?? p.oneOf;
  if (Array.isArray(choice)) return [...new Set(choice.map((c) => (isObject(c) ? typeOf(c) : "")).filter(Boolean))].join(" or ");
  return "const" in p || Array.isArray(p.enum) ? "one of these" : "anything";
}

function limits(p: Schema): string[] {
  const out: string[] = [];
  const say = (v: unknown) => JSON.stringify(v) ?? "";
  const values = Array.isArray(p.enum) ? p.enum : isObject(p.items) && Array.isArray(p.items.enum) ? p.items.enum : null;
  if (values) out.push("one of " + values.slice(0, 24).map(say).join(", ") + (values.length > 24 ? ` and ${values.length - 24} more` : ""));
  if ("const" in p) out.push("always " + say(p.const));
  if ("default" in p) out.push("default " + say(p.default));
  const words: Record<string, string> = { minimum: "at least", maximum: "at most", exclusiveMinimum: "more than", exclusiveMaximum: "less than", minLength: "min length", maxLength: "max length", minItems: "min items", maxItems: "max items", pattern: "pattern", format: "format" };
  for (const [key, word] of Object.entries(words)) if (key in p) out.push(word + " " + (typeof p[key] === "string" ? p[key] : say(p[key])));
  return out;
}

// draft writes arguments with what is required, to be filled in.
export function draft(schema: unknown): string {
  const s = isObject(schema) ? schema : {};
  const properties = isObject(s.properties) ? s.properties : {};
  const out: Schema = {};
  for (const name of Array.isArray(s.required) ? s.required : []) {
    if (typeof name !== "string") continue;
    const p = isObject(properties[name]) ? properties[name] : {};
    const values = Array.isArray(p.enum) ? p.enum : [];
    out[name] = "default" in p ? p.default : values.length ? values[0] : { string: "", number: 0, integer: 0, boolean: false, array: [], object: {} }[String(p.type)] ?? null;
  }
  return JSON.stringify(out, null, 2);
}

// wrong says what is plainly not right with arguments; empty: nothing. The
// server checks them whole.
export function wrong(source: string, schema: unknown): string {
  let value: unknown;
  try {
    value = JSON.parse(source || "{}");
  } catch (e) {
    return "Invalid JSON: " + (e instanceof Error ? e.message : String(e));
  }
  if (!isObject(value)) return "Arguments must be a JSON object: { … }";
  const s = isObject(schema) ? schema : {};
  for (const name of Array.isArray(s.required) ? s.required : []) if (typeof name === "string" && !(name in value)) return `${name} is missing`;
  const properties = isObject(s.properties) ? s.properties : {};
  for (const [name, v] of Object.entries(value)) {
    const p = properties[name];
    if (!isObject(p)) {
      if (s.additionalProperties === false) return `${name} is not a parameter`;
    } else if (typeof p.type === "string" && !fits(v, p.type)) return `${name} must be ${p.type}`;
  }
  return "";
}

function fits(v: unknown, type: string): boolean {
  switch (type) {
    case "integer": return Number.isInteger(v);
    case "array": return Array.isArray(v);
    case "object": return isObject(v);
    case "null": return v === null;
    case "string": case "number": case "boolean": return typeof v === type;
  }
  return true;
}
