package openai

import (
	"encoding/json"
	"io"
	"iter"
	"strings"

	"ken/internal/talk/model"
	"ken/internal/talk/provider"
	"ken/llm"
)

// A chatChunk is one event of the stream, or a whole answer.
type chatChunk struct {
	Object  string          `json:"object"`
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Index   count           `json:"index"`
		Delta   *chatDelta      `json:"delta"`
		Message *chatDelta      `json:"message"` // of servers that do not stream
		Finish  string          `json:"finish_reason"`
		Error   json.RawMessage `json:"error"`
	} `json:"choices"`
	Usage *chatUsage `json:"usage"`
}

type chatDelta struct {
	chatThoughts
	Text    chatText       `json:"content"`
	Refusal string         `json:"refusal"`
	Calls   []chatCallPart `json:"tool_calls"`
}

type chatCallPart struct {
	Index    *count `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"`
}

type chatUsage struct {
	Prompt     count `json:"prompt_tokens"`
	Completion count `json:"completion_tokens"`
	Total      count `json:"total_tokens"`
	Hit        count `json:"prompt_cache_hit_tokens"` // DeepSeek
	PromptOf   struct {
		Cached  count `json:"cached_tokens"`
		Written count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionOf struct {
		Reasoning count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func (u *chatUsage) usage() llm.Usage {
	// Some leave the thoughts out of what they call completion.
	if r := u.CompletionOf.Reasoning; r > 0 && u.Total == u.Prompt+u.Completion+r {
		u.Completion += r
	}
	return normal(u.Prompt, max(u.PromptOf.Cached, u.Hit), u.PromptOf.Written, u.Completion, u.CompletionOf.Reasoning)
}

// A chatText is the content of a message: a string, or a list of parts.
type chatText string

func (t *chatText) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err == nil {
		*t = chatText(s)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		*t += chatText(p.Text)
	}
	return nil
}

// A chatDecoder is what is known of an answer so far.
type chatDecoder struct {
	out
	thoughts chatThoughts
	calls    []*chatCall
	finish   string
	any      bool // there was a choice
	refused  bool
	usage    llm.Usage
	sent     omit
}

// A chatCall is a call that may still grow.
type chatCall struct {
	index    int // -1: the server gave none
	id, name string
	args     []byte
	extra    json.RawMessage
}

// decodeChat reads an answer. history is the conversation so far, whose ids no
// new call takes.
func decodeChat(r io.Reader, history []llm.Message, sent omit) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		d := chatDecoder{out: out{yield: yield, history: history}, sent: sent}
		from, whole, err := opened(r)
		switch {
		case err != nil:
			d.fail(err)
		case whole:
			data, err := readWhole(from)
			if err != nil {
				d.fail(err)
				return
			}
			if d.take(data); !d.stopped && !d.any {
				d.fail(malformed("an object that is no answer", nil))
			}
		default:
			d.stream(from)
		}
		if !d.stopped {
			d.end()
		}
	}
}

// stream reads events to the end of the answer.
func (d *chatDecoder) stream(r io.Reader) {
	for event, err := range provider.Events(r, mostEvent) {
		switch {
		case err != nil && d.finish != "":
			return // The answer is whole; what broke is only what comes after.
		case err != nil:
			d.fail(err)
		case string(event.Data) == "[DONE]":
			return
		case event.Name == "error":
			d.fail(faultOf(0, event.Data, d.sent))
		default:
			d.take(event.Data)
		}
		if d.stopped {
			return
		}
	}
	if d.finish == "" {
		d.fail(io.ErrUnexpectedEOF)
	}
}

func (d *chatDecoder) take(data []byte) {
	var chunk chatChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		d.fail(malformed("", err))
		return
	}
	if set(chunk.Error) || chunk.Object == "error" {
		d.fail(faultOf(0, data, d.sent))
		return
	}
	if chunk.Usage != nil {
		d.usage = chunk.Usage.usage()
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue // one answer was asked for
		}
		if set(choice.Error) {
			d.fail(faultOf(0, choice.Error, d.sent))
			return
		}
		d.any = true
		delta := choice.Delta
		if delta == nil {
			delta = choice.Message
		}
		if delta != nil {
			d.delta(delta)
		}
		if choice.Finish != "" {
			d.finish = strings.ToLower(choice.Finish)
		}
	}
}

func (d *chatDecoder) delta(delta *chatDelta) {
	if !delta.chatThoughts.empty() {
		d.flushText()
		d.thoughts.add(delta.chatThoughts)
		d.thought(delta.chatThoughts.text())
	}
	if text := string(delta.Text) + delta.Refusal; text != "" {
		d.flushThoughts()
		d.refused = d.refused || delta.Refusal != ""
		d.fragment(text)
	}
	for _, part := range delta.Calls {
		d.call(part)
	}
}

// call adds a part to the call that it belongs to. Some servers leave out the
// index, or give every call the same; a new id or a name after a whole call
// then begins the next.
func (d *chatDecoder) call(part chatCallPart) {
	args := part.Function.Arguments
	text := []byte(args)
	var s string
	if json.Unmarshal(args, &s) == nil { // null too
		text = []byte(s)
	}
	c := d.find(part, len(text) == 0)
	if c == nil {
		if len(d.calls) >= mostCalls {
			d.fail(malformed("more than 1,000 calls in one answer", nil))
			return
		}
		c = &chatCall{index: -1}
		if part.Index != nil {
			c.index = int(*part.Index)
		}
		d.calls = append(d.calls, c)
	}
	if c.id == "" {
		c.id = part.ID
	}
	if c.name == "" {
		c.name = part.Function.Name
	}
	if set(part.Extra) {
		c.extra = part.Extra
	}
	c.args = append(c.args, text...)
	d.grow(len(text))
}

// find returns the call that a part continues, or nil where it begins one. empty
// means that it has no arguments: some servers repeat the name alone.
func (d *chatDecoder) find(part chatCallPart, empty bool) *chatCall {
	var c *chatCall
	for i := len(d.calls) - 1; i >= 0 && c == nil; i-- {
		if part.Index == nil || d.calls[i].index == int(*part.Index) {
			c = d.calls[i]
		}
	}
	switch {
	case c == nil:
		return nil
	case part.ID != "" && c.id != "" && part.ID != c.id:
		return nil
	case part.ID == "" && part.Function.Name != "" && c.name != "" && json.Valid(c.args) && (part.Index == nil || !empty):
		return nil
	case part.Index == nil && part.ID != "" && part.ID == c.id:
		return c
	case part.Index == nil && part.ID != "" && c.id == "":
		return nil
	}
	return c
}

// flushThoughts emits the collected reasoning as a block.
func (d *chatDecoder) flushThoughts() {
	if d.thoughts.empty() {
		return
	}
	opaque, err := json.Marshal(d.thoughts)
	if err != nil {
		d.fail(malformed("", err))
		return
	}
	d.block(llm.Block{Reasoning: &llm.Reasoning{Text: d.thoughts.text(), Wire: string(model.Chat), Opaque: opaque}})
	d.thoughts = chatThoughts{}
}

// end emits the remaining blocks and the last chunk.
func (d *chatDecoder) end() {
	stop, fault := d.stop()
	if fault != nil {
		d.fail(fault)
		return
	}
	d.flushThoughts()
	d.flushText()
	cut := stop == llm.StopLength || stop == llm.StopRefuse
	for i, c := range d.calls {
		if cut && i == len(d.calls)-1 && !json.Valid(c.args) {
			break // cut off within its arguments; the reason for the end says so
		}
		call := &llm.ToolCall{ID: d.fresh(c.id), Name: c.name, Arguments: c.args}
		if len(c.args) == 0 {
			call.Arguments = []byte("{}")
		}
		if isObject(c.extra) {
			call.Opaque, _ = json.Marshal(map[string]json.RawMessage{string(model.Chat): c.extra})
		}
		d.block(llm.Block{Call: call})
	}
	usage := d.usage
	d.emit(llm.Chunk{Stop: stop, Usage: &usage})
}

// stop reads the reason for the end. Servers have many words for a few things.
func (d *chatDecoder) stop() (llm.StopReason, *llm.Error) {
	switch d.finish {
	case "length", "max_tokens", "model_length", "max_output_tokens":
		return llm.StopLength, nil
	case "content_filter", "safety", "refusal", "recitation", "sensitive":
		return llm.StopRefuse, nil
	case "error", "insufficient_system_resource", "abort", "malformed_function_call", "network_error":
		return "", &llm.Error{Kind: llm.Overloaded, Code: d.finish, Message: "the server gave up on the answer"}
	}
	switch {
	case d.refused:
		return llm.StopRefuse, nil
	case len(d.calls) > 0:
		return llm.StopCalls, nil
	}
	return llm.StopEnd, nil
}

// set reports whether a member was there and not null.
func set(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
