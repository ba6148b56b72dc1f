package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"ken/llm"
)

// gemini is Google Gemini's generateContent, whole and streamed.
type gemini struct{}

func (gemini) path() string { return "/v1beta/models/" }

func (gemini) read(in *incoming) {
	path, query, _ := strings.Cut(in.Path, "?")
	rest, ok := strings.CutPrefix(path, "/v1beta/models/")
	model, method, found := strings.Cut(rest, ":")
	if !ok || !found || model == "" {
		panic(failure{status: http.StatusNotFound, message: "Requested entity was not found: " + path})
	}
	in.posted(path)
	switch method {
	case "generateContent":
	case "streamGenerateContent":
		in.Stream = true
		if !strings.Contains("&"+query+"&", "&alt=sse&") {
			refuse("alt", "llmtest: streams only with alt=sse")
		}
	default:
		panic(failure{status: http.StatusNotFound, message: "no such method: " + method})
	}
	if strings.Contains(query, "key=") {
		refuse("key", "llmtest: a key in an address ends up in logs; send x-goog-api-key")
	}
	in.header("X-Goog-Api-Key", "")
	o := look("", in.Body, "contents! systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels")
	in.Request.Model = model
	if o.has("systemInstruction") {
		for i, raw := range o.child("systemInstruction", "parts! role").list("parts") {
			in.Request.System += look(fmt.Sprintf("systemInstruction.parts[%d]", i), raw, "text!").text("text")
		}
	}
	in.geminiConfig(o)
	known := in.geminiTools(o)
	in.geminiAllowed(o, known)
	(&contents{in: in, known: known}).read(o.list("contents"))
}

func (in *incoming) geminiConfig(o object) {
	if !o.has("generationConfig") {
		return
	}
	c := o.child("generationConfig", "maxOutputTokens temperature topP topK stopSequences candidateCount thinkingConfig responseMimeType seed")
	in.Request.MaxTokens = c.number("maxOutputTokens")
	if c.has("thinkingConfig") {
		t := c.child("thinkingConfig", "includeThoughts thinkingBudget thinkingLevel")
		if t.has("thinkingLevel") {
			in.Request.Effort = strings.ToLower(t.text("thinkingLevel"))
			if t.has("thinkingBudget") {
				refuse("generationConfig.thinkingConfig", "You can only set one of thinking_budget and thinking_level.")
			}
		}
	}
}

func (in *incoming) geminiTools(o object) map[string]bool {
	known := map[string]bool{}
	for i, raw := range o.list("tools") {
		t := look(fmt.Sprintf("tools[%d]", i), raw, "functionDeclarations!")
		for j, raw := range t.list("functionDeclarations") {
			f := look(fmt.Sprintf("%s.functionDeclarations[%d]", t.path, j), raw, "name! description parameters parametersJsonSchema response responseJsonSchema")
			tool := llm.Tool{Name: f.text("name"), Description: f.text("description")}
			if !geminiName(tool.Name) {
				refuse(f.path, "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128: %q", tool.Name)
			}
			if f.has("parameters") && f.has("parametersJsonSchema") {
				refuse(f.path, "%s: parameters and parametersJsonSchema exclude each other", f.path)
			}
			if f.has("parametersJsonSchema") {
				tool.Schema = f.m["parametersJsonSchema"]
			} else if f.has("parameters") {
				tool.Schema = f.m["parameters"]
				openAPI(f.at("parameters"), tool.Schema)
			}
			if known[tool.Name] {
				refuse(f.path, "Duplicate function declaration found: %s", tool.Name)
			}
			known[tool.Name] = true
			in.Request.Tools = append(in.Request.Tools, tool)
		}
	}
	return known
}

// openAPI refuses what the older form of parameters does not take.
func openAPI(path string, raw json.RawMessage) {
	s := look(path, raw, "type format title description nullable enum maxItems minItems properties required "+
		"minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum")
	if s.has("items") {
		openAPI(s.at("items"), s.m["items"])
	}
	if s.has("properties") {
		var m map[string]json.RawMessage
		s.into("properties", &m, "an object")
		for name, property := range m {
			openAPI(s.at("properties")+"."+name, property)
		}
	}
}

func geminiName(name string) bool {
	if name == "" || len(name) > 128 {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c != '.' && c != ':' && c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

func (in *incoming) geminiAllowed(o object, known map[string]bool) {
	if !o.has("toolConfig") {
		return
	}
	in.Choice = string(o.m["toolConfig"])
	t := o.child("toolConfig", "functionCallingConfig")
	if !t.has("functionCallingConfig") {
		return
	}
	f := t.child("functionCallingConfig", "mode allowedFunctionNames")
	mode := f.one("mode", "AUTO", "ANY", "NONE", "VALIDATED")
	if mode == "NONE" {
		in.Request.Allowed = []string{}
	}
	if !f.has("allowedFunctionNames") {
		return
	}
	in.Request.Allowed = f.texts("allowedFunctionNames")
	if mode != "ANY" && mode != "VALIDATED" {
		refuse("toolConfig", "Function calling config is set without function_calling_config.mode=ANY or VALIDATED, but allowed_function_names is set.")
	}
	for _, name := range in.Request.Allowed {
		if !known[name] {
			refuse("toolConfig", "Function calling config: allowed_function_names contains %q, which is not declared.", name)
		}
	}
}

// unsigned is what the vendor takes instead of a signature for calls that
// another model made.
const unsigned = "skip_thought_signature_validator"

// contents is the conversation while it is read.
type contents struct {
	in    *incoming
	known map[string]bool
	calls []*llm.ToolCall // of the content before
}

func (m *contents) read(list []json.RawMessage) {
	if len(list) == 0 {
		refuse("contents", "contents is not specified")
	}
	before := ""
	for i, raw := range list {
		o := look(fmt.Sprintf("contents[%d]", i), raw, "role! parts!")
		role := o.one("role", "user", "model")
		if i == 0 && role != "user" {
			refuse(o.path, "Please ensure that multiturn requests start with a user turn.")
		}
		parts := o.list("parts")
		if len(parts) == 0 {
			refuse(o.path, "%s.parts must not be empty.", o.path)
		}
		waiting := m.calls
		m.calls = nil
		var blocks []llm.Block
		var results []*llm.ToolResult
		for j, raw := range parts {
			b := m.part(fmt.Sprintf("%s.parts[%d]", o.path, j), role, raw)
			blocks = append(blocks, b)
			if b.Call != nil {
				m.calls = append(m.calls, b.Call)
			}
			if b.Result != nil {
				results = append(results, b.Result)
			}
		}
		if len(m.calls) > 0 && before == "model" {
			refuse(o.path, "Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		}
		m.pair(o.path, waiting, results)
		m.in.say(map[string]llm.Role{"user": llm.User, "model": llm.Assistant}[role], blocks...)
		before = role
	}
	if len(m.calls) > 0 {
		m.pair("contents", m.calls, nil)
	}
}

// pair checks that each call has its response in the content right after it.
func (m *contents) pair(path string, calls []*llm.ToolCall, results []*llm.ToolResult) {
	if len(calls) != len(results) {
		refuse(path, "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	}
	left := append([]*llm.ToolCall(nil), calls...)
next:
	for _, r := range results {
		for i, c := range left {
			if c != nil && c.Name == r.Name && c.ID == r.ID {
				left[i] = nil
				continue next
			}
		}
		refuse(path, "%s: function response %q (id %q) answers no function call of the turn before.", path, r.Name, r.ID)
	}
}

func (m *contents) part(path, role string, raw json.RawMessage) llm.Block {
	o := look(path, raw, "text thought thoughtSignature inlineData functionCall functionResponse")
	set := 0
	for _, name := range []string{"text", "inlineData", "functionCall", "functionResponse"} {
		if o.has(name) {
			set++
		}
	}
	if set != 1 {
		refuse(path, "%s: required oneof field 'data' must have one initialized field, has %d", path, set)
	}
	switch {
	case role == "user" && (o.has("functionCall") || o.has("thought") || o.has("thoughtSignature")):
		refuse(path, "%s: a user turn has no function calls and no thoughts", path)
	case role == "model" && o.has("functionResponse"):
		refuse(path, "%s: function responses belong to the user turn", path)
	case o.has("functionCall"):
		return llm.Block{Call: m.call(o)}
	case o.has("functionResponse"):
		return llm.Block{Result: m.result(o)}
	case o.has("inlineData"):
		d := o.child("inlineData", "mimeType! data!")
		return llm.Block{Image: d.picture("data", d.text("mimeType"), d.text("data"))}
	}
	text := o.text("text")
	// Clients put the pieces of a text together, and the signature that came with
	// the last of them with the whole.
	if o.has("thoughtSignature") && o.text("thoughtSignature") != sign(Gemini, "") {
		refuse(path, "%s: Thought signature is not valid.", path)
	}
	if o.flag("thought") || o.has("thoughtSignature") && text == "" {
		return llm.Block{Reasoning: &llm.Reasoning{Text: text, Wire: string(Gemini), Opaque: raw}}
	}
	return llm.Block{Text: text}
}

func (m *contents) call(o object) *llm.ToolCall {
	c := o.child("functionCall", "name! args id")
	call := &llm.ToolCall{ID: c.text("id"), Name: c.text("name"), Arguments: []byte("{}")}
	if c.has("args") {
		call.Arguments = c.arguments("args", false)
	}
	if !m.known[call.Name] {
		refuse(c.path, "%s: function %q is not declared in tools.", c.path, call.Name)
	}
	m.in.server.mu.Lock()
	want := m.in.server.signed[call.ID+"/"+call.Name]
	m.in.server.mu.Unlock()
	got := o.text("thoughtSignature")
	if got == unsigned && want == "" {
		got = ""
	}
	if got != want {
		refuse(c.path, "Function call is missing a thought_signature in functionCall parts, or has a wrong one. Function call %q, part %s: got %q, want %q.", call.Name, o.path, got, want)
	}
	if got != "" {
		call.Opaque, _ = json.Marshal(got)
	}
	return call
}

func (m *contents) result(o object) *llm.ToolResult {
	f := o.child("functionResponse", "name! response! id parts")
	r := &llm.ToolResult{ID: f.text("id"), Name: f.text("name")}
	var response map[string]json.RawMessage
	if err := json.Unmarshal(f.m["response"], &response); err != nil || response == nil {
		refuse(f.path, "%s.response: want an object", f.path)
	}
	for _, key := range []string{"error", "output", "result"} {
		raw, ok := response[key]
		if !ok {
			continue
		}
		text := string(raw)
		_ = json.Unmarshal(raw, &text) // what is no string is shown as it is
		if text != "" {
			r.Blocks = append(r.Blocks, llm.Block{Text: text})
		}
		r.Failed = key == "error"
		break
	}
	for i, raw := range f.list("parts") {
		d := look(fmt.Sprintf("%s.parts[%d]", f.path, i), raw, "inlineData!").child("inlineData", "mimeType! data! displayName")
		r.Blocks = append(r.Blocks, llm.Block{Image: d.picture("data", d.text("mimeType"), d.text("data"))})
	}
	return r
}
