package openai

import (
	"encoding/json"
	"net/url"
	"strings"

	"ken/internal/talk/model"
	"ken/internal/talk/provider"
	"ken/llm"
)

// encodeChat writes a request, and says what of it a server may refuse. The
// messages come last, so that a longer conversation begins with the bytes of a
// shorter one.
func encodeChat(cfg provider.Config, req llm.Request, without omit) ([]byte, omit, error) {
	w := chatWriter{without: without}
	w.b = make([]byte, 0, roughly(req))
	w.raw("{")
	w.text("model", cfg.Model)
	w.field("stream")
	w.raw("true")
	if w.may(omitStreamOptions) {
		w.field("stream_options")
		w.raw(`{"include_usage":true}`)
	}
	w.limit(cfg)
	if req.Effort != "" && w.may(omitEffort) {
		w.text("reasoning_effort", req.Effort)
	}
	if req.Cache != "" && w.may(omitCacheKey) {
		w.text("prompt_cache_key", req.Cache)
	}
	w.tools(req)
	w.choice(req)
	w.field("messages")
	w.raw("[")
	if req.System != "" {
		w.raw(`{"role":"system","content":`)
		w.str(req.System)
		w.raw("}")
	}
	for _, m := range req.Messages {
		w.message(m)
	}
	w.raw("]}")
	return w.b, w.sent, w.err
}

// roughly guesses the size of a body, so that it is not moved while it grows.
func roughly(req llm.Request) int {
	n := 4096 + len(req.System)
	for _, t := range req.Tools {
		n += 128 + len(t.Description) + len(t.Schema)
	}
	for _, m := range req.Messages {
		n += roughlyBlocks(m.Blocks)
	}
	return n + n/8
}

func roughlyBlocks(blocks []llm.Block) (n int) {
	for _, b := range blocks {
		n += 96 + len(b.Text)
		switch {
		case b.Image != nil:
			n += len(b.Image.Data) * 4 / 3
		case b.Call != nil:
			n += 64 + len(b.Call.Arguments)
		case b.Reasoning != nil:
			n += len(b.Reasoning.Opaque)
		case b.Result != nil:
			n += roughlyBlocks(b.Result.Blocks)
		}
		for _, t := range b.Tools {
			n += 128 + len(t.Description) + len(t.Schema)
		}
	}
	return n
}

type chatWriter struct {
	writer
	without, sent omit
}

// may reports whether something may be written, and notes that it is.
func (w *chatWriter) may(bit omit) bool {
	if w.without&bit != 0 {
		return false
	}
	w.sent |= bit
	return true
}

// limit writes how long the answer may be. OpenAI's newer models refuse the
// old name of it; most others know only the old one, and pass over the new one
// in silence, which would be worse.
func (w *chatWriter) limit(cfg provider.Config) {
	if cfg.MaxTokens <= 0 {
		return
	}
	names := []parameter{{"max_tokens", omitMaxTokens}, {"max_completion_tokens", omitMaxCompletion}}
	if ofOpenAI(cfg.BaseURL) {
		names[0], names[1] = names[1], names[0]
	}
	for _, p := range names {
		if w.may(p.bit) {
			w.number(p.name, cfg.MaxTokens)
			return
		}
	}
}

func ofOpenAI(base string) bool {
	u, err := url.Parse(base)
	return err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".openai.azure.com"))
}

func (w *chatWriter) tools(req llm.Request) {
	if len(req.Tools) == 0 {
		return
	}
	w.field("tools")
	w.raw("[")
	for _, t := range req.Tools {
		w.sep()
		w.raw(`{"type":"function","function":{`)
		w.text("name", t.Name)
		w.text("description", t.Description)
		w.field("parameters")
		w.schema(t)
		w.raw("}}")
	}
	w.raw("]")
}

// choice writes which tools may be called, in a way that leaves the list of
// tools and its place in the cache alone.
func (w *chatWriter) choice(req llm.Request) {
	if req.Allowed == nil || len(req.Tools) == 0 || !w.may(omitChoice) {
		return
	}
	names := offered(req)
	w.field("tool_choice")
	if len(names) == 0 {
		w.raw(`"none"`)
		return
	}
	w.raw(`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[`)
	for _, name := range names {
		w.sep()
		w.raw(`{"type":"function","function":{"name":`)
		w.str(name)
		w.raw("}}")
	}
	w.raw("]}}")
}

func (w *chatWriter) message(m llm.Message) {
	if m.Role == llm.Assistant {
		w.assistant(m.Blocks)
		return
	}
	// Results come first, because nothing may stand between a call and its
	// result. Their images wait for the message of the user's behind them.
	var rest []llm.Block
	for _, b := range m.Blocks {
		switch {
		case b.Result != nil:
			rest = append(rest, w.result(b.Result)...)
		case len(b.Tools) > 0:
			w.unsupported(llm.Inline)
		}
	}
	for _, b := range m.Blocks {
		if b.Text != "" || b.Image != nil {
			rest = append(rest, b)
		}
	}
	if len(rest) > 0 {
		w.user(rest)
	}
}

// unsupported notes that the wire has no such thing.
func (w *chatWriter) unsupported(feature string) {
	if w.err == nil {
		w.err = &llm.Error{
			Kind: llm.Unsupported, Feature: feature,
			Message: "Chat Completions takes tools only at the start",
			Fix:     "set chat.toolDelivery to bridge for this model",
		}
	}
}

// noWords stands for a failure that says nothing: OpenAI's wires have no mark
// for a result that failed, so its text must tell.
const noWords = "The call failed."

// result writes the text of a result and gives its images with a line that says
// whose they are.
func (w *chatWriter) result(r *llm.ToolResult) []llm.Block {
	var images []llm.Block
	for _, b := range r.Blocks {
		switch {
		case b.Image != nil:
			images = append(images, b)
		case len(b.Tools) > 0:
			w.unsupported(llm.Search)
		}
	}
	text := texts(r.Blocks)
	if text == "" && r.Failed {
		text = noWords
	}
	if len(images) > 0 {
		if text == "" {
			text = "(the images follow)"
		}
		line := llm.Block{Text: "Images of the result of " + sendable(r.Name) + ", call " + r.ID + ":"}
		images = append([]llm.Block{line}, images...)
	}
	w.sep()
	w.raw(`{"role":"tool","tool_call_id":`)
	w.str(r.ID)
	w.raw(`,"content":`)
	w.str(text)
	w.raw("}")
	return images
}

// user writes a message of the user's. It is one text where there are no
// images: not every server takes a list of texts.
func (w *chatWriter) user(blocks []llm.Block) {
	plain := true
	for _, b := range blocks {
		plain = plain && b.Image == nil
	}
	w.sep()
	w.raw(`{"role":"user","content":`)
	if plain {
		w.str(texts(blocks))
		w.raw("}")
		return
	}
	w.raw("[")
	for _, b := range blocks {
		w.sep()
		if b.Image != nil {
			w.raw(`{"type":"image_url","image_url":{"url":`)
			w.image(b.Image)
			w.raw("}}")
			continue
		}
		w.raw(`{"type":"text","text":`)
		w.str(b.Text)
		w.raw("}")
	}
	w.raw("]}")
}

func (w *chatWriter) assistant(blocks []llm.Block) {
	text, calls := texts(blocks), 0
	for _, b := range blocks {
		if b.Call != nil {
			calls++
		}
	}
	w.sep()
	w.raw(`{"role":"assistant","content":`)
	if text == "" && calls > 0 {
		w.raw("null")
	} else {
		w.str(text)
	}
	w.thoughts(blocks)
	if calls > 0 {
		w.field("tool_calls")
		w.raw("[")
		for _, b := range blocks {
			if b.Call != nil {
				w.call(b.Call)
			}
		}
		w.raw("]")
	}
	w.raw("}")
}

func (w *chatWriter) call(c *llm.ToolCall) {
	w.sep()
	w.raw(`{"id":`)
	w.str(c.ID)
	w.raw(`,"type":"function","function":{`)
	w.text("name", sendable(c.Name))
	w.text("arguments", arguments(c.Arguments))
	w.raw("}")
	if extra := own(c.Opaque, string(model.Chat)); isObject(extra) {
		w.field("extra_content")
		w.json(extra)
	}
	w.raw("}")
}

// thoughts sends back what the model thought under the names that it came
// with: some servers want it, and those that do not say so.
func (w *chatWriter) thoughts(blocks []llm.Block) {
	var all chatThoughts
	for _, b := range blocks {
		if b.Reasoning == nil || b.Reasoning.Wire != string(model.Chat) || len(b.Reasoning.Opaque) == 0 {
			continue
		}
		var one chatThoughts
		if json.Unmarshal(b.Reasoning.Opaque, &one) == nil {
			all.add(one)
		}
	}
	if all.empty() || !w.may(omitThoughts) {
		return
	}
	if len(all.Content) > 0 {
		w.text("reasoning_content", string(all.Content))
	}
	if len(all.Reasoning) > 0 {
		w.text("reasoning", string(all.Reasoning))
	}
	if len(all.Details) > 0 {
		details, err := json.Marshal(all.Details)
		if err == nil {
			w.field("reasoning_details")
			w.json(details)
		}
	}
}
