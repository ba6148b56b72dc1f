// Talks to a scripted server with the vendor's own client, and prints what that
// understood: one line of JSON for each request.
//
//   node sdk.mjs <folder of node_modules> <wire> <base url>
import { createRequire } from "node:module";

const [folder, wire, url] = process.argv.slice(2);
const load = createRequire(folder + "/");
const print = (line) => console.log(JSON.stringify(line));
const schema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
const about = "Reads a file.";
const system = "Be brief.";
const empty = () => ({ thought: "", text: "", calls: [], stop: "", usage: null, fragments: 0 });

async function openaiChat() {
  const OpenAI = load("openai");
  const client = new OpenAI({ apiKey: "test", baseURL: url, maxRetries: 0 });
  const request = {
    model: "scripted",
    messages: [{ role: "system", content: system }, { role: "user", content: "hello" }],
    tools: [{ type: "function", function: { name: "read_file", description: about, parameters: schema } }],
  };
  const read = (message, stop, usage) => ({
    ...empty(), thought: message.reasoning_content ?? "", text: message.content ?? "", stop,
    calls: (message.tool_calls ?? []).map((c) => ({ id: c.id, name: c.function.name, arguments: c.function.arguments })),
    usage: [usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens, usage.completion_tokens, usage.completion_tokens_details.reasoning_tokens],
  });
  return {
    streamed: async () => {
      let thought = "";
      let fragments = 0;
      const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
      stream.on("chunk", (c) => {
        thought += c.choices[0]?.delta?.reasoning_content ?? "";
        if (c.choices[0]?.delta?.content) fragments++;
      });
      const done = await stream.finalChatCompletion();
      return { ...read(done.choices[0].message, done.choices[0].finish_reason, done.usage), thought, fragments };
    },
    whole: async () => {
      const done = await client.chat.completions.create(request);
      return read(done.choices[0].message, done.choices[0].finish_reason, done.usage);
    },
    replayed: async () => {
      const { message } = (await client.chat.completions.create(request)).choices[0];
      const results = message.tool_calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: "result" }));
      const done = await client.chat.completions.create({ ...request, messages: [...request.messages, message, ...results] });
      return read(done.choices[0].message, done.choices[0].finish_reason, done.usage);
    },
    error: (e) => [e.status ?? 0, e.code ?? "", e.type ?? ""],
  };
}

async function openaiResponses() {
  const OpenAI = load("openai");
  const client = new OpenAI({ apiKey: "test", baseURL: url, maxRetries: 0 });
  const request = {
    model: "scripted", instructions: system, input: "hello", store: false, include: ["reasoning.encrypted_content"],
    tools: [{ type: "function", name: "read_file", description: about, parameters: schema, strict: false }],
  };
  const read = (done) => {
    const out = empty();
    for (const item of done.output) {
      if (item.type === "reasoning") out.thought += item.summary.map((s) => s.text).join("");
      if (item.type === "function_call") out.calls.push({ id: item.call_id, name: item.name, arguments: item.arguments });
    }
    out.text = done.output_text;
    out.stop = done.status;
    const u = done.usage;
    out.usage = [u.input_tokens, u.input_tokens_details.cached_tokens, u.output_tokens, u.output_tokens_details.reasoning_tokens];
    return out;
  };
  return {
    streamed: async () => {
      let fragments = 0;
      const stream = client.responses.stream(request);
      stream.on("response.output_text.delta", () => fragments++);
      return { ...read(await stream.finalResponse()), fragments };
    },
    whole: async () => read(await client.responses.create(request)),
    replayed: async () => {
      const { output } = await client.responses.create(request);
      const results = output.filter((i) => i.type === "function_call").map((c) => ({ type: "function_call_output", call_id: c.call_id, output: "result" }));
      return read(await client.responses.create({ ...request, input: [{ role: "user", content: "hello" }, ...output, ...results] }));
    },
    error: (e) => [e.status ?? 0, e.code ?? "", e.type ?? ""],
  };
}

async function anthropic() {
  const Anthropic = load("@anthropic-ai/sdk");
  const client = new Anthropic({ apiKey: "test", baseURL: url, maxRetries: 0 });
  const request = {
    model: "scripted", max_tokens: 4000, system, messages: [{ role: "user", content: "hello" }],
    tools: [{ name: "read_file", description: about, input_schema: schema }],
    thinking: { type: "adaptive" },
  };
  const read = (done) => {
    const out = empty();
    for (const block of done.content) {
      if (block.type === "thinking") out.thought += block.thinking;
      if (block.type === "text") out.text += block.text;
      if (block.type === "tool_use") out.calls.push({ id: block.id, name: block.name, arguments: JSON.stringify(block.input) });
    }
    out.stop = done.stop_reason;
    const u = done.usage;
    out.usage = [u.input_tokens + u.cache_read_input_tokens + u.cache_creation_input_tokens, u.cache_read_input_tokens, u.output_tokens, u.output_tokens_details.thinking_tokens];
    return out;
  };
  return {
    streamed: async () => {
      let fragments = 0;
      const stream = client.messages.stream(request);
      stream.on("text", () => fragments++);
      return { ...read(await stream.finalMessage()), fragments };
    },
    whole: async () => read(await client.messages.create(request)),
    replayed: async () => {
      const { content } = await client.messages.stream(request).finalMessage();
      const results = content.filter((b) => b.type === "tool_use").map((b) => ({ type: "tool_result", tool_use_id: b.id, content: "result" }));
      return read(await client.messages.create({ ...request, messages: [...request.messages, { role: "assistant", content }, { role: "user", content: results }] }));
    },
    error: (e) => [e.status ?? 0, "", e.error?.error?.type ?? ""],
  };
}

async function gemini() {
  const { GoogleGenAI } = load("@google/genai");
  const client = new GoogleGenAI({ apiKey: "test", httpOptions: { baseUrl: url } });
  const request = {
    model: "scripted", contents: [{ role: "user", parts: [{ text: "hello" }] }],
    config: {
      systemInstruction: { parts: [{ text: system }] }, thinkingConfig: { includeThoughts: true },
      tools: [{ functionDeclarations: [{ name: "read_file", description: about, parametersJsonSchema: schema }] }],
    },
  };
  const add = (out, chunk) => {
    const candidate = chunk.candidates[0];
    for (const part of candidate.content?.parts ?? []) {
      if (part.functionCall) out.calls.push({ id: part.functionCall.id ?? "", name: part.functionCall.name, arguments: JSON.stringify(part.functionCall.args) });
      else if (part.thought) out.thought += part.text;
      else if (part.text) { out.text += part.text; out.fragments++; }
    }
    if (candidate.finishReason) out.stop = candidate.finishReason;
    const u = chunk.usageMetadata;
    out.usage = [u.promptTokenCount, u.cachedContentTokenCount ?? 0, (u.candidatesTokenCount ?? 0) + (u.thoughtsTokenCount ?? 0), u.thoughtsTokenCount ?? 0];
    return out;
  };
  return {
    streamed: async () => {
      const out = empty();
      for await (const chunk of await client.models.generateContentStream(request)) add(out, chunk);
      return out;
    },
    whole: async () => ({ ...add(empty(), await client.models.generateContent(request)), fragments: 0 }),
    replayed: async () => {
      const { content } = (await client.models.generateContent(request)).candidates[0];
      const parts = content.parts.filter((p) => p.functionCall).map(({ functionCall: c }) => ({ functionResponse: { id: c.id, name: c.name, response: { output: "result" } } }));
      const done = await client.models.generateContent({ ...request, contents: [...request.contents, content, { role: "user", parts }] });
      return { ...add(empty(), done), fragments: 0 };
    },
    error: (e) => {
      let inner = {};
      try { inner = JSON.parse(e.message).error ?? {}; } catch {}
      return [e.status ?? 0, "", inner.status ?? ""];
    },
  };
}

const api = await { "openai-chat": openaiChat, "openai-responses": openaiResponses, anthropic, gemini }[wire]();
for await (const line of process.stdin.setEncoding("utf8")) {
  for (const what of line.split("\n").filter((w) => w)) {
    try {
      print(await api[what]());
    } catch (e) {
      print({ failed: api.error(e), message: String(e.message).slice(0, 200) });
    }
  }
}
