package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"ken/llm"
)

// responses is OpenAI Responses.
type responses struct{}

func (responses) path() string { return "/responses" }

const responsesFields = "model! input! instructions tools tool_choice parallel_tool_calls max_output_tokens reasoning include " +
	"store stream stream_options text truncation prompt_cache_key prompt_cache_options prompt_cache_retention " +
	"safety_identifier metadata temperature top_p user service_tier max_tool_calls"

func (responses) read(in *incoming) {
	in.posted("/v1/responses")
	in.header("Authorization", "Bearer ")
	o := look("", in.Body, responsesFields)
	req := &in.Request
	req.Model, req.MaxTokens, in.Stream = o.text("model"), o.number("max_output_tokens"), o.flag("stream")
	if o.has("max_output_tokens") && req.MaxTokens < 16 {
		refuse("max_output_tokens", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", req.MaxTokens)
	}
	req.System = o.text("instructions")
	if o.has("reasoning") {
		r := o.child("reasoning", "effort summary mode context")
		if r.has("effort") {
			req.Effort = r.one("effort", "none", "minimal", "low", "medium", "high", "xhigh", "max")
		}
	}
	for _, name := range o.texts("include") {
		if name != "reasoning.encrypted_content" {
			refuse("include", "llmtest: include %q is not known here", name)
		}
	}
	if o.has("prompt_cache_options") {
		o.child("prompt_cache_options", "mode ttl")
	}
	in.CacheKey = o.text("prompt_cache_key")
	if len(in.CacheKey) > 64 {
		refuse("prompt_cache_key", "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64.")
	}
	req.Cache = in.CacheKey
	search := false
	for i, raw := range o.list("tools") {
		tool, found := responsesTool(fmt.Sprintf("tools[%d]", i), raw)
		search = search || found
		req.Tools = append(req.Tools, tool)
	}
	unique("tools", req.Tools)
	in.choice(o, false)
	if o.isString("input") {
		in.say(llm.User, llm.Block{Text: o.text("input")})
		return
	}
	(&items{in: in, books: newBook(), search: search}).read(o.list("input"))
	if in.Marks > 4 {
		refuse("input", "llmtest: a request writes at most 4 cache breakpoints, found %d", in.Marks)
	}
}

// searchTool is the name that a tool_search goes by here: it has none.
const searchTool = "tool_search"

// responsesTool reads a tool; search says that it is the client's own search.
func responsesTool(path string, raw json.RawMessage) (tool llm.Tool, search bool) {
	if kind(path, raw, "type") == "tool_search" {
		o := look(path, raw, "type! execution description parameters")
		o.one("execution", "client") // that of the server searches what is deferred, which nothing here does
		t := llm.Tool{Name: searchTool, Description: o.text("description")}
		if o.has("parameters") {
			t.Schema = o.schema("parameters", searchTool)
		}
		return t, true
	}
	o := look(path, raw, "type! name! description parameters! strict defer_loading")
	o.one("type", "function")
	return functionOf(o, "parameters"), false
}

// items is the input while it is read.
type items struct {
	in        *incoming
	books     *book
	search    bool
	reasoning string // the path of a reasoning item that waits for what follows it
}

func (m *items) read(list []json.RawMessage) {
	if len(list) == 0 {
		refuse("input", "Invalid 'input': empty array. Expected an array with minimum length 1.")
	}
	for i, raw := range list {
		path := fmt.Sprintf("input[%d]", i)
		k := "message"
		if hasField(raw, "type") {
			k = kind(path, raw, "type")
		}
		if m.reasoning != "" && k != "message" && k != "function_call" && k != "tool_search_call" && k != "reasoning" {
			refuse(m.reasoning, "Item at %s of type 'reasoning' was provided without its required following item.", m.reasoning)
		}
		if k != "reasoning" {
			m.reasoning = ""
		}
		m.item(path, k, raw)
	}
	if m.reasoning != "" {
		refuse(m.reasoning, "Item at %s of type 'reasoning' was provided without its required following item.", m.reasoning)
	}
	m.books.settled("input")
	if len(m.in.Request.Messages) == 0 {
		refuse("input", "llmtest: there is no item besides the system text")
	}
}

func hasField(raw json.RawMessage, name string) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(raw, &m) == nil && m[name] != nil
}

func (m *items) item(path, k string, raw json.RawMessage) {
	switch k {
	case "message":
		m.message(path, raw)
	case "function_call":
		o := look(path, raw, "type! call_id! name! arguments! id status")
		m.prefix(o, "fc")
		call := llm.ToolCall{ID: o.text("call_id"), Name: o.toolName("name", 64), Arguments: o.arguments("arguments", true)}
		m.books.call(path, call.ID, call.Name)
		m.put(llm.Assistant, llm.Block{Call: &call})
	case "function_call_output":
		o := look(path, raw, "type! call_id! output! id status")
		id := o.text("call_id")
		r := &llm.ToolResult{ID: id, Name: m.books.result(path, id)}
		r.Blocks = m.parts(o, "output", "input_text input_image")
		m.put(llm.User, llm.Block{Result: r})
	case "reasoning":
		o := look(path, raw, "type! id! summary! encrypted_content content status")
		m.prefix(o, "rs")
		m.put(llm.Assistant, llm.Block{Reasoning: m.thought(o, raw)})
		m.reasoning = path
	case "additional_tools":
		o := look(path, raw, "type! role! tools! id")
		o.one("role", "developer")
		m.put(llm.User, llm.Block{Tools: m.tools(o)})
	case "tool_search_call":
		o := look(path, raw, "type! call_id! arguments! execution! id status")
		o.one("execution", "client")
		m.wantSearch(path)
		call := llm.ToolCall{ID: o.text("call_id"), Name: searchTool, Arguments: o.arguments("arguments", false)}
		m.books.call(path, call.ID, call.Name)
		m.put(llm.Assistant, llm.Block{Call: &call})
	case "tool_search_output":
		o := look(path, raw, "type! call_id! tools! execution! id status")
		o.one("execution", "client")
		m.wantSearch(path)
		id := o.text("call_id")
		if name := m.books.result(path, id); name != searchTool {
			refuse(path, "%s: call %q is no tool_search_call", path, id)
		}
		r := &llm.ToolResult{ID: id, Name: searchTool}
		if tools := m.tools(o); len(tools) > 0 {
			r.Blocks = []llm.Block{{Tools: tools}}
		}
		m.put(llm.User, llm.Block{Result: r})
	default:
		refuse(path, "Invalid value: '%s'. Supported values are: 'message', 'function_call', 'function_call_output', 'reasoning', 'additional_tools', 'tool_search_call' and 'tool_search_output'.", k)
	}
}

func (m *items) wantSearch(path string) {
	if !m.search {
		refuse(path, "%s: tool search items require a tool of type 'tool_search' in 'tools'", path)
	}
}

// prefix checks that an item's own ID is of its kind.
func (m *items) prefix(o object, want string) {
	if id := o.text("id"); o.has("id") && !strings.HasPrefix(id, want) {
		refuse(o.at("id"), "Invalid '%s': '%s'. Expected an ID that begins with '%s'.", o.at("id"), id, want)
	}
}

func (m *items) tools(o object) []llm.Tool {
	var list []llm.Tool
	for i, raw := range o.list("tools") {
		tool, search := responsesTool(fmt.Sprintf("%s[%d]", o.at("tools"), i), raw)
		if search {
			refuse(o.at("tools"), "%s: a tool_search cannot be given in the middle", o.at("tools"))
		}
		list = append(list, tool)
	}
	unique(o.at("tools"), list)
	return list
}

// put adds a block to the last message if that has the same role, and begins a new
// message otherwise.
func (m *items) put(role llm.Role, b llm.Block) {
	if last := m.in.last(role); last != nil {
		last.Blocks = append(last.Blocks, b)
		return
	}
	m.in.say(role, b)
}

func (m *items) message(path string, raw json.RawMessage) {
	o := look(path, raw, "type role! content! id status phase")
	switch o.one("role", "user", "assistant", "system", "developer") {
	case "user":
		m.in.say(llm.User, m.parts(o, "content", "input_text input_image")...)
	case "assistant":
		m.prefix(o, "msg")
		for _, b := range m.parts(o, "content", "output_text refusal") {
			m.put(llm.Assistant, b)
		}
	default:
		if len(m.in.Request.Messages) > 0 {
			refuse(path, "%s: llmtest takes the system text only before all messages", path)
		}
		m.in.Request.System += blocksText(m.parts(o, "content", "input_text"))
	}
}

func (m *items) parts(o object, field, kinds string) []llm.Block {
	if o.isString(field) {
		if text := o.text(field); text != "" {
			return []llm.Block{{Text: text}}
		}
		return nil
	}
	var blocks []llm.Block
	for i, raw := range o.list(field) {
		path := fmt.Sprintf("%s[%d]", o.at(field), i)
		k := kind(path, raw, "type")
		if !strings.Contains(" "+kinds+" ", " "+k+" ") {
			refuse(path, "Invalid value: '%s'. Supported values are: %s.", k, kinds)
		}
		switch k {
		case "input_text":
			p := look(path, raw, "type! text! prompt_cache_breakpoint")
			m.in.mark(p)
			blocks = append(blocks, llm.Block{Text: p.text("text")})
		case "output_text":
			blocks = append(blocks, llm.Block{Text: look(path, raw, "type! text! annotations logprobs").text("text")})
		case "refusal":
			blocks = append(blocks, llm.Block{Text: look(path, raw, "type! refusal!").text("refusal")})
		case "input_image":
			p := look(path, raw, "type! image_url! detail prompt_cache_breakpoint")
			m.in.mark(p)
			blocks = append(blocks, llm.Block{Image: p.dataURL("image_url")})
		}
	}
	return blocks
}

// thought checks that reasoning comes back as it was given.
func (m *items) thought(o object, raw json.RawMessage) *llm.Reasoning {
	if !o.has("encrypted_content") {
		panic(failure{status: http.StatusNotFound, param: o.path, message: fmt.Sprintf(
			"Item with id '%s' not found. Items are not persisted when `store` is set to false.", o.text("id"))})
	}
	var text strings.Builder
	for i, part := range o.list("summary") {
		p := look(fmt.Sprintf("%s[%d]", o.at("summary"), i), part, "type! text!")
		p.one("type", "summary_text")
		text.WriteString(p.text("text"))
	}
	if o.text("encrypted_content") != sign(Responses, text.String()) {
		refuse(o.path, "The encrypted content for item %s could not be verified.", o.text("id"))
	}
	return &llm.Reasoning{Text: text.String(), Wire: string(Responses), Opaque: raw}
}
