package llmtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ken/llm"
)

// messages is Anthropic Messages.
type messages struct{}

func (messages) path() string { return "/v1/messages" }

const (
	version2026 = "2026-10-21" // has no temperature, top_p and top_k
	betaInline  = "inline-tools-2026-09-15"
	betaChanges = "mid-conversation-tool-changes-2026-07-01"
)

func (messages) read(in *incoming) {
	in.posted("/v1/messages")
	if v := in.Header.Get("Anthropic-Version"); !slices.Contains([]string{"2023-06-01", version2026}, v) {
		refuse("anthropic-version", "anthropic-version: %q is not a valid version", v)
	}
	if in.Header.Get("Authorization") == "" {
		in.header("X-Api-Key", "")
	}
	o := look("", in.Body, "model! messages! max_tokens! system tools tool_choice stream thinking output_config metadata "+
		"temperature top_p top_k stop_sequences service_tier cache_control")
	in.cacheMark(o)
	for _, gone := range []string{"temperature", "top_p", "top_k"} {
		if o.has(gone) && in.Header.Get("Anthropic-Version") == version2026 {
			refuse(gone, "%s: Extra inputs are not permitted", gone)
		}
	}
	req := &in.Request
	req.Model, req.MaxTokens, in.Stream = o.text("model"), o.number("max_tokens"), o.flag("stream")
	if req.MaxTokens < 1 {
		refuse("max_tokens", "max_tokens: Input should be greater than or equal to 1")
	}
	if o.has("thinking") {
		in.thinking(o)
	}
	if o.has("output_config") {
		c := o.child("output_config", "effort format task_budget")
		if c.has("effort") {
			req.Effort = c.one("effort", "low", "medium", "high", "xhigh", "max")
		}
	}
	in.anthropicSystem(o)
	available := in.anthropicTools(o)
	if o.has("tool_choice") {
		in.Choice = string(o.m["tool_choice"])
		c := o.child("tool_choice", "type! name disable_parallel_tool_use")
		c.one("type", "auto", "any", "tool", "none")
		if !o.has("tools") {
			refuse("tool_choice", "tool_choice may only be specified while providing tools.")
		}
	}
	m := &conversation{in: in, books: newBook(), available: available}
	m.read(o.list("messages"))
	if in.Marks > 4 {
		refuse("cache_control", "A maximum of 4 blocks with cache_control may be provided. Found %d.", in.Marks)
	}
}

func (in *incoming) thinking(o object) {
	t := o.child("thinking", "type! budget_tokens display")
	switch t.one("type", "enabled", "disabled", "adaptive", "between_tools") {
	case "enabled":
		if n := t.number("budget_tokens"); n < 1024 {
			refuse("thinking.enabled.budget_tokens", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
		} else if n >= in.Request.MaxTokens {
			refuse("max_tokens", "`max_tokens` must be greater than `thinking.budget_tokens`.")
		}
	default:
		if t.has("budget_tokens") {
			refuse("thinking.budget_tokens", "thinking.budget_tokens: Extra inputs are not permitted")
		}
	}
}

func (in *incoming) anthropicSystem(o object) {
	if !o.has("system") {
		return
	}
	if o.isString("system") {
		in.Request.System = o.text("system")
		return
	}
	for i, raw := range o.list("system") {
		b := look(fmt.Sprintf("system.%d", i), raw, "type! text! cache_control")
		b.one("type", "text")
		wantText(b.path, b.text("text"))
		in.cacheMark(b)
		in.Request.System += b.text("text")
	}
}

// anthropicTools reads the list of tools, and gives them by name. Those that are
// deferred stand in the request only where they are given.
func (in *incoming) anthropicTools(o object) map[string]llm.Tool {
	available := map[string]llm.Tool{}
	var all []llm.Tool
	for i, raw := range o.list("tools") {
		t := look(fmt.Sprintf("tools.%d", i), raw, "name! input_schema! description type cache_control defer_loading strict eager_input_streaming input_examples")
		tool := llm.Tool{Name: t.toolName("name", 128), Description: t.text("description")}
		tool.Schema = t.schema("input_schema", tool.Name)
		all = append(all, tool)
		available[tool.Name] = tool
		in.cacheMark(t)
		switch late := t.flag("defer_loading"); {
		case late && t.has("cache_control"):
			refuse(t.path, "%s: Tools with defer_loading cannot use prompt caching (cache_control).", t.path)
		case !late:
			in.Request.Tools = append(in.Request.Tools, tool)
		}
	}
	unique("tools", all)
	if len(all) > 0 && len(in.Request.Tools) == 0 {
		refuse("tools", "At least one tool must have defer_loading=false. All tools cannot be deferred.")
	}
	return available
}

// cacheMark counts and checks a cache mark of Anthropic's.
func (in *incoming) cacheMark(o object) {
	if !o.has("cache_control") {
		return
	}
	c := o.child("cache_control", "type! ttl")
	c.one("type", "ephemeral")
	if c.has("ttl") {
		c.one("ttl", "5m", "1h")
	}
	in.Marks++
}

// A conversation is the list of messages while it is read.
type conversation struct {
	in        *incoming
	books     *book
	available map[string]llm.Tool // of the list, and those added so far
	before    string              // role of the message before
}

func (m *conversation) read(list []json.RawMessage) {
	if len(list) == 0 {
		refuse("messages", "messages: at least one message is required")
	}
	for i, raw := range list {
		o := look(fmt.Sprintf("messages.%d", i), raw, "role! content!")
		role := o.one("role", "user", "assistant", "system")
		switch {
		case role == "system" && i == 0:
			refuse(o.path, "messages.0: use the top-level 'system' parameter for the initial system prompt")
		case role == "system" && m.before != "user":
			refuse(o.path, "%s: a system message must follow a user message", o.path)
		case role == "user" && m.before == "system":
			refuse(o.path, "%s: a system message must be the last one or be followed by an assistant message", o.path)
		case role == "assistant" && i == 0:
			refuse(o.path, "messages: first message must use the \"user\" role")
		}
		if role == "assistant" {
			m.books.settled(o.path)
		}
		m.message(o, role)
		if role == "user" {
			m.books.settled(o.path) // all results stand in the message right after the calls
		}
		m.before = role
	}
	m.books.settled("messages")
	if m.before == "assistant" {
		refuse("messages", "This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	// A deferred tool that was never given costs nothing and is not an error: a search may find it later.
}

func (m *conversation) message(o object, role string) {
	if o.isString("content") {
		text := o.text("content")
		wantText(o.path, text)
		m.put(role, llm.Block{Text: text})
		return
	}
	list := o.list("content")
	if len(list) == 0 {
		refuse(o.path, "%s: all messages must have non-empty content", o.path)
	}
	if role != "system" {
		m.in.say(llm.Role(role))
	}
	other := false // something that is no result stood before
	for i, raw := range list {
		path := fmt.Sprintf("%s.content.%d", o.path, i)
		k := kind(path, raw, "type")
		if k == "tool_result" && other {
			refuse(path, "%s: tool_result blocks must come before all other content", path)
		}
		other = other || k != "tool_result"
		m.block(path, k, role, raw)
	}
}

// put adds a block to the newest message, or makes one.
func (m *conversation) put(role string, b llm.Block) {
	if role == "system" {
		role = "user" // what is added stands with the user's message before it
	}
	if last := m.in.last(llm.Role(role)); last != nil && (len(last.Blocks) == 0 || b.Tools != nil) {
		last.Blocks = append(last.Blocks, b)
		return
	}
	m.in.say(llm.Role(role), b)
}

func (m *conversation) block(path, k, role string, raw json.RawMessage) {
	allowed := map[string][]string{
		"user":      {"text", "image", "tool_result"},
		"assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
		"system":    {"text", "tool_addition"},
	}[role]
	if !slices.Contains(allowed, k) {
		refuse(path, "%s: Input tag '%s' found using 'type' is not allowed in a %s message; expected one of %q", path, k, role, allowed)
	}
	n := len(m.in.Request.Messages) - 1
	add := func(b llm.Block) {
		m.in.Request.Messages[n].Blocks = append(m.in.Request.Messages[n].Blocks, b)
	}
	switch k {
	case "text":
		b := look(path, raw, "type! text! cache_control")
		wantText(path, b.text("text"))
		m.in.cacheMark(b)
		add(llm.Block{Text: b.text("text")})
	case "image":
		b := look(path, raw, "type! source! cache_control")
		m.in.cacheMark(b)
		add(llm.Block{Image: b.source()})
	case "thinking", "redacted_thinking":
		add(llm.Block{Reasoning: thought(path, k, raw)})
	case "tool_use":
		b := look(path, raw, "type! id! name! input! cache_control")
		m.in.cacheMark(b)
		call := llm.ToolCall{ID: b.text("id"), Name: b.toolName("name", 200), Arguments: b.arguments("input", false)}
		m.books.call(path, call.ID, call.Name)
		add(llm.Block{Call: &call})
	case "tool_result":
		add(llm.Block{Result: m.result(path, raw)})
	case "tool_addition":
		tool := m.addition(look(path, raw, "type! tool! cache_control"))
		blocks := m.in.Request.Messages[n].Blocks
		if last := len(blocks) - 1; last >= 0 && blocks[last].Tools != nil {
			blocks[last].Tools = append(blocks[last].Tools, tool)
			return
		}
		add(llm.Block{Tools: []llm.Tool{tool}})
	}
}

// source reads an image.
func (o object) source() *llm.Image {
	s := o.child("source", "type! media_type! data!")
	s.one("type", "base64")
	return s.picture("data", s.text("media_type"), s.text("data"))
}

// thought checks that a thought comes back as it was given.
func thought(path, k string, raw json.RawMessage) *llm.Reasoning {
	text, signature := "", ""
	if k == "thinking" {
		b := look(path, raw, "type! thinking! signature!")
		text, signature = b.text("thinking"), b.text("signature")
		if signature != sign(Messages, text) {
			refuse(path, "%s: Invalid `signature` in `thinking` block: blocks must remain as they were in the original response", path)
		}
	} else {
		look(path, raw, "type! data!")
	}
	return &llm.Reasoning{Text: text, Wire: string(Messages), Opaque: raw}
}

func (m *conversation) result(path string, raw json.RawMessage) *llm.ToolResult {
	b := look(path, raw, "type! tool_use_id! content is_error cache_control")
	m.in.cacheMark(b)
	id := b.text("tool_use_id")
	r := &llm.ToolResult{ID: id, Name: m.books.result(path, id), Failed: b.flag("is_error")}
	if b.isString("content") {
		if text := b.text("content"); text != "" {
			r.Blocks = []llm.Block{{Text: text}}
		}
		return r
	}
	for i, raw := range b.list("content") {
		path := fmt.Sprintf("%s.content.%d", path, i)
		switch k := kind(path, raw, "type"); k {
		case "text":
			t := look(path, raw, "type! text! cache_control")
			m.in.cacheMark(t)
			wantText(path, t.text("text"))
			r.Blocks = append(r.Blocks, llm.Block{Text: t.text("text")})
		case "image":
			i := look(path, raw, "type! source! cache_control")
			m.in.cacheMark(i)
			r.Blocks = append(r.Blocks, llm.Block{Image: i.source()})
		case "tool_reference":
			t := look(path, raw, "type! tool_name! cache_control")
			m.in.cacheMark(t)
			tool := m.reference(t, t.text("tool_name"))
			if n := len(r.Blocks) - 1; n >= 0 && r.Blocks[n].Tools != nil {
				r.Blocks[n].Tools = append(r.Blocks[n].Tools, tool)
			} else {
				r.Blocks = append(r.Blocks, llm.Block{Tools: []llm.Tool{tool}})
			}
		default:
			refuse(path, "%s: Input tag '%s' is not allowed in a tool_result", path, k)
		}
	}
	return r
}

// reference is a tool that is given here by its name.
func (m *conversation) reference(o object, name string) llm.Tool {
	tool, ok := m.available[name]
	if !ok {
		refuse(o.path, "%s: Tool reference '%s' not found in available tools", o.path, name)
	}
	return tool
}

// addition is a tool that a system message adds.
func (m *conversation) addition(o object) llm.Tool {
	m.in.cacheMark(o)
	betas := strings.Join(m.in.Header.Values("Anthropic-Beta"), ",")
	if kind(o.at("tool"), o.m["tool"], "type") == "tool_reference" {
		if !strings.Contains(betas, betaChanges) && !strings.Contains(betas, betaInline) {
			refuse(o.path, "%s: tool_addition requires the beta header %s", o.path, betaChanges)
		}
		r := o.child("tool", "type! name!")
		return m.reference(r, r.text("name"))
	}
	if !strings.Contains(betas, betaInline) {
		refuse(o.path, "%s: tool_definition requires the beta header %s", o.path, betaInline)
	}
	d := o.child("tool", "type! definition!")
	d.one("type", "tool_definition")
	t := d.child("definition", "name! input_schema! description type strict")
	tool := llm.Tool{Name: t.toolName("name", 128), Description: t.text("description")}
	tool.Schema = t.schema("input_schema", tool.Name)
	m.available[tool.Name] = tool
	return tool
}
