package openai

import (
	"encoding/json"

	"ken/internal/talk/model"
	"ken/internal/talk/provider"
	"ken/llm"
)

// encodeResponses writes a request, and says what of it a server may refuse.
// The input comes last, so that a longer conversation begins with the bytes of
// a shorter one. marked asks for a cache mark after the system text.
//
// prompt_cache_options is left to its default, which adds the provider's own
// mark at the newest message.
func encodeResponses(cfg provider.Config, req llm.Request, marked bool, without omit) ([]byte, omit, error) {
	w := responsesWriter{chatWriter: chatWriter{without: without}, searches: map[string]bool{}}
	w.b = make([]byte, 0, roughly(req))
	w.raw("{")
	w.text("model", cfg.Model)
	w.raw(`,"stream":true,"store":false`)
	if w.may(omitInclude) {
		w.raw(`,"include":["reasoning.encrypted_content"]`)
	}
	if cfg.MaxTokens > 0 && w.may(omitMaxOutput) {
		w.number("max_output_tokens", cfg.MaxTokens)
	}
	w.reasoning(req.Effort)
	if req.Cache != "" && w.may(omitCacheKey) {
		w.text("prompt_cache_key", req.Cache)
	}
	search := searchTool(req)
	w.tools(req, search)
	w.choice(req, search)
	marked = marked && req.System != "" && w.may(omitMark)
	if req.System != "" && !marked {
		w.text("instructions", req.System)
	}
	w.field("input")
	w.raw("[")
	if marked {
		// Only a part of a message can carry a mark, instructions cannot.
		w.raw(`{"type":"message","role":"developer","content":[{"type":"input_text","text":`)
		w.str(req.System)
		w.raw(`,"prompt_cache_breakpoint":{"mode":"explicit"}}]}`)
	}
	for _, m := range req.Messages {
		w.message(m)
	}
	w.raw("]}")
	return w.b, w.sent, w.err
}

type responsesWriter struct {
	chatWriter
	searches map[string]bool // ids of calls that are tool searches on the wire
}

func (w *responsesWriter) reasoning(effort string) {
	summary := w.may(omitSummary)
	asked := effort != "" && w.may(omitEffort)
	if !summary && !asked {
		return
	}
	w.field("reasoning")
	w.raw("{")
	if asked {
		w.text("effort", effort)
	}
	if summary {
		w.text("summary", "auto")
	}
	w.raw("}")
}

// searchTool returns the tool by which the model searches for tools, as the
// request says or as it did so far, or none with an empty name.
func searchTool(req llm.Request) llm.Tool {
	name := req.Search
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			switch {
			case name != "":
			case b.Call != nil && isSearch(b.Call):
				name = b.Call.Name
			case b.Result != nil:
				for _, inner := range b.Result.Blocks {
					if len(inner.Tools) > 0 {
						name = b.Result.Name
					}
				}
			}
		}
	}
	if name == "" {
		return llm.Tool{}
	}
	for _, t := range req.Tools {
		if t.Name == name {
			return t
		}
	}
	return llm.Tool{Name: name, Description: "Searches for tools."}
}

// isSearch reports whether a call came as a tool search of the wire's own.
func isSearch(c *llm.ToolCall) bool {
	return string(own(c.Opaque, string(model.Responses))) == `"tool_search_call"`
}

func (w *responsesWriter) tools(req llm.Request, search llm.Tool) {
	if len(req.Tools) == 0 && search.Name == "" {
		return
	}
	w.field("tools")
	w.raw("[")
	for _, t := range req.Tools {
		w.tool(t, false)
	}
	if search.Name != "" {
		w.sent |= hasSearch
		w.sep()
		w.raw(`{"type":"tool_search","execution":"client"`)
		w.text("description", search.Description)
		w.field("parameters")
		w.schema(search)
		w.raw("}")
	}
	w.raw("]")
}

func (w *responsesWriter) tool(t llm.Tool, deferred bool) {
	w.sep()
	w.raw(`{"type":"function"`)
	w.text("name", t.Name)
	w.text("description", t.Description)
	w.field("parameters")
	w.schema(t)
	w.raw(`,"strict":false`)
	if deferred {
		w.raw(`,"defer_loading":true`)
	}
	w.raw("}")
}

// choice writes which tools may be called, in a way that leaves the list of
// tools and its place in the cache alone.
func (w *responsesWriter) choice(req llm.Request, search llm.Tool) {
	if req.Allowed == nil || len(req.Tools) == 0 && search.Name == "" || !w.may(omitChoice) {
		return
	}
	names := offered(req)
	w.field("tool_choice")
	if len(names) == 0 {
		w.raw(`"none"`)
		return
	}
	w.raw(`{"type":"allowed_tools","mode":"auto","tools":[`)
	for _, name := range names {
		w.sep()
		w.raw(`{"type":"function","name":`)
		w.str(name)
		w.raw("}")
		if name == search.Name {
			w.raw(`,{"type":"tool_search"}`)
		}
	}
	w.raw("]}")
}

// message writes the items of one message, in the order of its blocks.
func (w *responsesWriter) message(m llm.Message) {
	// Reasoning belongs to what follows it, and without that is refused.
	last := -1
	for i, b := range m.Blocks {
		if b.Text != "" || b.Call != nil {
			last = i
		}
	}
	phase := ""
	for i := 0; i < len(m.Blocks); i++ {
		b := m.Blocks[i]
		switch {
		case b.Call != nil:
			w.call(b.Call)
		case b.Result != nil:
			w.result(b.Result)
		case b.Reasoning != nil && i < last:
			if p := w.thought(b.Reasoning); p != "" {
				phase = p
			}
		case len(b.Tools) > 0:
			w.additional(b.Tools)
		case m.Role == llm.Assistant && b.Text != "":
			w.said(b.Text, phase)
			phase = ""
		case b.Text != "" || b.Image != nil:
			// What stands together is one message.
			end := i + 1
			for end < len(m.Blocks) && (m.Blocks[end].Text != "" || m.Blocks[end].Image != nil) {
				end++
			}
			w.sep()
			w.raw(`{"type":"message","role":"user","content":`)
			w.parts(m.Blocks[i:end])
			w.raw("}")
			i = end - 1
		}
	}
}

// additional writes tools that are added at this point of the conversation.
func (w *responsesWriter) additional(tools []llm.Tool) {
	w.sent |= hasInline
	w.sep()
	w.raw(`{"type":"additional_tools","role":"developer","tools":[`)
	for _, t := range tools {
		w.tool(t, false)
	}
	w.raw("]}")
}

// said writes a text of the model's.
func (w *responsesWriter) said(text, phase string) {
	w.sep()
	w.raw(`{"type":"message","role":"assistant"`)
	if phase != "" {
		w.text("phase", phase)
	}
	w.raw(`,"content":[{"type":"output_text","text":`)
	w.str(text)
	w.raw(`}]}`)
}

// parts writes texts and images.
func (w *responsesWriter) parts(blocks []llm.Block) {
	w.raw("[")
	for _, b := range blocks {
		switch {
		case b.Image != nil:
			w.sep()
			w.raw(`{"type":"input_image","detail":"auto","image_url":`)
			w.image(b.Image)
			w.raw("}")
		case b.Text != "":
			w.sep()
			w.raw(`{"type":"input_text","text":`)
			w.str(b.Text)
			w.raw("}")
		}
	}
	w.raw("]")
}

func (w *responsesWriter) call(c *llm.ToolCall) {
	if isSearch(c) {
		w.searches[c.ID] = true
		w.search(c.ID, arguments(c.Arguments))
		return
	}
	w.sep()
	w.raw(`{"type":"function_call","call_id":`)
	w.str(c.ID)
	w.text("name", sendable(c.Name))
	w.text("arguments", arguments(c.Arguments))
	w.raw("}")
}

// search writes a tool search that the client made.
func (w *responsesWriter) search(id, arguments string) {
	w.sent |= hasSearch
	w.sep()
	w.raw(`{"type":"tool_search_call","execution":"client","status":"completed","call_id":`)
	w.str(id)
	w.field("arguments")
	w.json([]byte(arguments))
	w.raw("}")
}

// found writes what a search found.
func (w *responsesWriter) found(id string, blocks []llm.Block) {
	w.sep()
	w.raw(`{"type":"tool_search_output","execution":"client","status":"completed","call_id":`)
	w.str(id)
	w.raw(`,"tools":[`)
	for _, b := range blocks {
		for _, t := range b.Tools {
			w.tool(t, true)
		}
	}
	w.raw("]}")
}

// result writes the result of a call. That of a search has room for tools only,
// so its text follows as a message. That of a function has no room for tools,
// so they follow as a search.
func (w *responsesWriter) result(r *llm.ToolResult) {
	rest, tools := make([]llm.Block, 0, len(r.Blocks)), false
	images := false
	for _, b := range r.Blocks {
		tools = tools || len(b.Tools) > 0
		images = images || b.Image != nil
		if b.Text != "" || b.Image != nil {
			rest = append(rest, b)
		}
	}
	if r.Failed && texts(rest) == "" {
		rest = append([]llm.Block{{Text: noWords}}, rest...)
	}
	if w.searches[r.ID] {
		w.found(r.ID, r.Blocks)
		if len(rest) > 0 {
			w.sep()
			w.raw(`{"type":"message","role":"user","content":`)
			w.parts(rest)
			w.raw("}")
		}
		return
	}
	w.sep()
	w.raw(`{"type":"function_call_output","call_id":`)
	w.str(r.ID)
	w.field("output")
	if images || len(rest) > 1 {
		w.parts(rest)
	} else {
		w.str(texts(rest))
	}
	w.raw("}")
	if tools {
		id := "search_" + r.ID
		w.search(id, "{}")
		w.found(id, r.Blocks)
	}
}

// A responsesOpaque is what a reasoning block of this wire holds: an item as it
// came, or only the phase of the text that follows.
type responsesOpaque struct {
	Type      string          `json:"type"`
	Encrypted string          `json:"encrypted_content"`
	Content   json.RawMessage `json:"content"`
	Phase     string          `json:"phase"`
}

// thought sends reasoning back, and gives the phase of the text after it. An
// item without content that the server could read would be looked up by its id,
// and nothing is kept there.
func (w *responsesWriter) thought(r *llm.Reasoning) (phase string) {
	var o responsesOpaque
	if r.Wire != string(model.Responses) || !isObject(r.Opaque) || json.Unmarshal(r.Opaque, &o) != nil {
		return ""
	}
	if o.Type == "message" {
		return o.Phase
	}
	if o.Type == "reasoning" && (o.Encrypted != "" || len(o.Content) > 2 && set(o.Content)) && w.may(omitThoughts) {
		w.sep()
		w.json(r.Opaque)
	}
	return ""
}
