package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"ken/llm"
)

// chat is OpenAI Chat Completions.
type chat struct{}

func (chat) path() string { return "/chat/completions" }

const chatFields = "model! messages! stream stream_options tools tool_choice parallel_tool_calls max_tokens " +
	"max_completion_tokens reasoning_effort prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier " +
	"temperature top_p user store metadata seed stop n verbosity service_tier response_format"

func (chat) read(in *incoming) {
	in.posted("/v1/chat/completions")
	in.header("Authorization", "Bearer ")
	o := look("", in.Body, chatFields)
	req := &in.Request
	req.Model = o.text("model")
	req.MaxTokens = max(o.number("max_completion_tokens"), o.number("max_tokens"))
	if o.has("max_tokens") && o.has("max_completion_tokens") {
		refuse("max_tokens", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	if o.has("reasoning_effort") {
		req.Effort = o.one("reasoning_effort", "none", "minimal", "low", "medium", "high", "xhigh")
	}
	in.CacheKey = o.text("prompt_cache_key")
	req.Cache = in.CacheKey
	in.Stream = o.flag("stream")
	if o.has("stream_options") {
		if !in.Stream {
			refuse("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
		}
		o.child("stream_options", "include_usage include_obfuscation")
	}
	for i, raw := range o.list("tools") {
		tool := look(fmt.Sprintf("tools[%d]", i), raw, "type! function!")
		tool.one("type", "function")
		req.Tools = append(req.Tools, functionOf(tool.child("function", "name! description parameters strict"), "parameters"))
	}
	if o.has("tools") && len(req.Tools) == 0 {
		refuse("tools", "Invalid 'tools': empty array. Expected an array with minimum length 1.")
	}
	unique("tools", req.Tools)
	in.choice(o, true)
	in.chatMessages(o.list("messages"))
}

// functionOf reads a function as both wires of OpenAI write it.
func functionOf(o object, schema string) llm.Tool {
	t := llm.Tool{Name: o.toolName("name", 64), Description: o.text("description")}
	if o.has(schema) {
		t.Schema = o.schema(schema, t.Name)
	}
	return t
}

// choice reads tool_choice. Chat nests the list of allowed tools once more.
func (in *incoming) choice(o object, nested bool) {
	if !o.has("tool_choice") {
		return
	}
	in.Choice = string(o.m["tool_choice"])
	if !o.has("tools") {
		refuse("tool_choice", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	}
	if o.isString("tool_choice") {
		if o.one("tool_choice", "auto", "none", "required") == "none" {
			in.Request.Allowed = []string{}
		}
		return
	}
	spec := "type! mode! tools!"
	if nested {
		spec = "type! allowed_tools!"
	}
	c := o.child("tool_choice", spec)
	c.one("type", "allowed_tools")
	if nested {
		c = c.child("allowed_tools", "mode! tools!")
	}
	c.one("mode", "auto", "required")
	known := map[string]bool{}
	for _, t := range in.Request.Tools {
		known[t.Name] = true
	}
	in.Request.Allowed = []string{}
	for i, raw := range c.list("tools") {
		path := fmt.Sprintf("tool_choice.tools[%d]", i)
		var name string
		if nested {
			name = look(path, raw, "type! function!").child("function", "name!").text("name")
		} else {
			allowed := look(path, raw, "type! name")
			if allowed.one("type", "function", "tool_search") == "tool_search" {
				continue
			}
			name = allowed.text("name")
		}
		if nested && !known[name] {
			refuse(path, "Tool choice 'function' %q not found in 'tools' parameter.", name)
		}
		in.Request.Allowed = append(in.Request.Allowed, name)
	}
	if len(in.Request.Allowed) == 0 {
		refuse("tool_choice.tools", "Invalid 'tool_choice.tools': empty array. Expected an array with minimum length 1.")
	}
}

func (in *incoming) chatMessages(list []json.RawMessage) {
	if len(list) == 0 {
		refuse("messages", "Invalid 'messages': empty array. Expected an array with minimum length 1.")
	}
	books := newBook()
	for i, raw := range list {
		path := fmt.Sprintf("messages[%d]", i)
		role := kind(path, raw, "role")
		if role != "tool" {
			books.settled(path)
		}
		switch role {
		case "system", "developer":
			if i > 0 && len(in.Request.Messages) > 0 {
				refuse(path, "%s: llmtest takes the system text only before all messages", path)
			}
			o := look(path, raw, "role! content! name")
			in.Request.System += blocksText(in.chatParts(o, "text"))
		case "user":
			o := look(path, raw, "role! content! name")
			in.say(llm.User, in.chatParts(o, "text image_url")...)
		case "assistant":
			in.chatAssistant(look(path, raw, "role! content tool_calls refusal name reasoning_content"), books)
		case "tool":
			o := look(path, raw, "role! content! tool_call_id!")
			id := o.text("tool_call_id")
			name := books.result(path, id)
			result := llm.Block{Result: &llm.ToolResult{ID: id, Name: name, Blocks: in.chatParts(o, "text")}}
			if last := in.last(llm.User); last != nil && len(last.Blocks) > 0 && last.Blocks[0].Result != nil {
				last.Blocks = append(last.Blocks, result)
			} else {
				in.say(llm.User, result)
			}
		default:
			refuse(path+".role", "Invalid value: %q. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", role)
		}
	}
	books.settled("messages")
	if len(in.Request.Messages) == 0 {
		refuse("messages", "llmtest: there is no message besides the system text")
	}
}

func (in *incoming) chatAssistant(o object, books *book) {
	var blocks []llm.Block
	if text := o.text("reasoning_content"); text != "" {
		blocks = append(blocks, llm.Block{Reasoning: &llm.Reasoning{Text: text, Wire: string(Chat)}})
	}
	if o.has("content") {
		blocks = append(blocks, in.chatParts(o, "text refusal")...)
	}
	calls := o.list("tool_calls")
	if o.has("tool_calls") && len(calls) == 0 {
		refuse(o.at("tool_calls"), "Invalid '%s': empty array. Expected an array with minimum length 1.", o.at("tool_calls"))
	}
	for j, raw := range calls {
		c := look(fmt.Sprintf("%s[%d]", o.at("tool_calls"), j), raw, "id! type! function!")
		c.one("type", "function")
		f := c.child("function", "name! arguments!")
		call := llm.ToolCall{ID: c.text("id"), Name: f.toolName("name", 64), Arguments: f.arguments("arguments", true)}
		books.call(c.path, call.ID, call.Name)
		blocks = append(blocks, llm.Block{Call: &call})
	}
	if !o.has("content") && len(calls) == 0 {
		refuse(o.path, "Invalid value for 'content': expected a string, got null.")
	}
	in.say(llm.Assistant, blocks...)
}

// chatParts reads content: a string, or parts of the kinds that are allowed.
func (in *incoming) chatParts(o object, kinds string) []llm.Block {
	if o.isString("content") {
		if text := o.text("content"); text != "" {
			return []llm.Block{{Text: text}}
		}
		return nil
	}
	var blocks []llm.Block
	for i, raw := range o.list("content") {
		path := fmt.Sprintf("%s[%d]", o.at("content"), i)
		k := kind(path, raw, "type")
		if !strings.Contains(" "+kinds+" ", " "+k+" ") {
			refuse(path, "Invalid content type %q. Supported values are: %s", k, kinds)
		}
		switch k {
		case "text":
			p := look(path, raw, "type! text! prompt_cache_breakpoint")
			in.mark(p)
			blocks = append(blocks, llm.Block{Text: p.text("text")})
		case "refusal":
			blocks = append(blocks, llm.Block{Text: look(path, raw, "type! refusal!").text("refusal")})
		case "image_url":
			p := look(path, raw, "type! image_url! prompt_cache_breakpoint")
			in.mark(p)
			blocks = append(blocks, llm.Block{Image: p.child("image_url", "url! detail").dataURL("url")})
		}
	}
	if len(blocks) == 0 {
		refuse(o.at("content"), "Invalid '%s': empty array. Expected an array with minimum length 1.", o.at("content"))
	}
	return blocks
}

// mark counts a breakpoint of OpenAI's.
func (in *incoming) mark(o object) {
	if o.has("prompt_cache_breakpoint") {
		in.Marks++
	}
}

// say appends a message.
func (in *incoming) say(role llm.Role, blocks ...llm.Block) {
	in.Request.Messages = append(in.Request.Messages, llm.Message{Role: role, Blocks: blocks})
}

// last returns the newest message if it has this role, else nil.
func (in *incoming) last(role llm.Role) *llm.Message {
	n := len(in.Request.Messages)
	if n == 0 || in.Request.Messages[n-1].Role != role {
		return nil
	}
	return &in.Request.Messages[n-1]
}

func blocksText(blocks []llm.Block) string {
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(block.Text)
	}
	return b.String()
}

func (chat) usage(u llm.Usage) fields {
	return fields{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     fields{"cached_tokens": u.CachedRead, "cache_write_tokens": u.CachedWrite, "audio_tokens": 0},
		"completion_tokens_details": fields{"reasoning_tokens": u.Thought, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
	}
}

func (chat) finish(s llm.StopReason) string {
	return map[llm.StopReason]string{llm.StopCalls: "tool_calls", llm.StopLength: "length", llm.StopRefuse: "content_filter"}[s]
}

func (c chat) play(out *sink, in *incoming, r Reply) {
	chunk := func(choices []fields, more fields) fields {
		m := fields{
			"id": "chatcmpl-" + in.id, "object": "chat.completion.chunk", "created": 1790000000,
			"model": in.Request.Model, "service_tier": "default", "system_fingerprint": "fp_llmtest", "choices": choices,
		}
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	delta := func(d fields) fields {
		return chunk([]fields{{"index": 0, "delta": d, "logprobs": nil, "finish_reason": nil}}, nil)
	}
	out.raw(": connected\n\n")
	out.event("", delta(fields{"role": "assistant", "content": "", "refusal": nil}))
	for _, f := range fragments(r.Thought, r.Fragments) {
		out.fragment("", delta(fields{"reasoning_content": f}))
	}
	for _, f := range fragments(r.Text, r.Fragments) {
		out.fragment("", delta(fields{"content": f}))
	}
	for i, call := range r.Calls {
		out.event("", delta(fields{"tool_calls": []fields{{
			"index": i, "id": callID("call_", in, i, call), "type": "function",
			"function": fields{"name": call.Name, "arguments": ""},
		}}}))
		for _, f := range fragments(string(call.Arguments), r.Fragments) {
			out.fragment("", delta(fields{"tool_calls": []fields{{"index": i, "function": fields{"arguments": f}}}}))
		}
	}
	out.finish()
	stop := c.finish(r.Stop)
	if stop == "" {
		stop = "stop"
	}
	out.event("", chunk([]fields{{"index": 0, "delta": fields{}, "logprobs": nil, "finish_reason": stop}}, nil))
	if bodyAsks(in, "stream_options", "include_usage") {
		out.event("", chunk([]fields{}, fields{"usage": c.usage(r.Usage)}))
	}
	out.raw("data: [DONE]\n\n")
}

func (c chat) whole(in *incoming, r Reply) any {
	message := fields{"role": "assistant", "content": nil, "refusal": nil}
	if r.Text != "" {
		message["content"] = r.Text
	}
	if r.Thought != "" {
		message["reasoning_content"] = r.Thought
	}
	var calls []fields
	for i, call := range r.Calls {
		calls = append(calls, fields{"id": callID("call_", in, i, call), "type": "function",
			"function": fields{"name": call.Name, "arguments": string(call.Arguments)}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	stop := c.finish(r.Stop)
	if stop == "" {
		stop = "stop"
	}
	return fields{
		"id": "chatcmpl-" + in.id, "object": "chat.completion", "created": 1790000000, "model": in.Request.Model,
		"choices": []fields{{"index": 0, "message": message, "logprobs": nil, "finish_reason": stop}}, "usage": c.usage(r.Usage),
	}
}

func (chat) failure(f failure) any { return openaiError(f) }

func (chat) failed(out *sink, f failure) { out.event("", openaiError(f)) }

func (chat) fault(f Fault) failure { return openaiFault(f) }

// openaiError is the body of an error on both of OpenAI's wires.
func openaiError(f failure) fields {
	e := fields{"message": f.message, "type": f.kind, "param": nil, "code": nil}
	if f.kind == "" {
		e["type"] = "invalid_request_error"
	}
	if f.param != "" {
		e["param"] = f.param
	}
	if f.code != "" {
		e["code"] = f.code
	}
	return fields{"error": e}
}

func openaiFault(f Fault) failure {
	switch f {
	case Rate:
		return failure{status: http.StatusTooManyRequests, kind: "requests", code: "rate_limit_exceeded",
			message: "Rate limit reached for the model on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again shortly."}
	case Overloaded:
		return failure{status: http.StatusServiceUnavailable, kind: "service_unavailable_error", code: "server_is_overloaded",
			message: "Our servers are currently overloaded. Please try again later."}
	case TooLong:
		return failure{status: http.StatusBadRequest, param: "messages", code: "context_length_exceeded",
			message: "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages."}
	case Auth:
		return failure{status: http.StatusUnauthorized, code: "invalid_api_key",
			message: "Incorrect API key provided: sk-te**t. You can find your API key in your account."}
	case Quota:
		return failure{status: http.StatusTooManyRequests, kind: "insufficient_quota", code: "insufficient_quota",
			message: "You exceeded your current quota, please check your plan and billing details."}
	case UnsupportedInline:
		return failure{status: http.StatusBadRequest, param: "input", code: "unsupported_value",
			message: "Unsupported value: 'additional_tools' items are not supported with this model."}
	case UnsupportedSearch:
		return failure{status: http.StatusBadRequest, param: "tools", code: "unsupported_value",
			message: "Unsupported value: 'tool_search' is not supported with this model."}
	}
	return failure{status: http.StatusInternalServerError, kind: "server_error", code: "server_error",
		message: "The server had an error while processing your request. Sorry about that!"}
}

// callID is the ID of a call; a server makes one where the script has none.
func callID(prefix string, in *incoming, i int, call llm.ToolCall) string {
	if call.ID != "" {
		return call.ID
	}
	return fmt.Sprintf("%s%d_%d", prefix, in.Number, i)
}

// bodyAsks reports whether a flag within an object of the body is set.
func bodyAsks(in *incoming, name, flag string) bool {
	var m map[string]json.RawMessage
	var inner map[string]any
	return json.Unmarshal(in.Body, &m) == nil && json.Unmarshal(m[name], &inner) == nil && inner[flag] == true
}
