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

// A responsesEvent is one event of the stream. Which members it has depends on
// its type.
type responsesEvent struct {
	Type     string          `json:"type"`
	Delta    string          `json:"delta"`
	Part     count           `json:"summary_index"`
	Item     json.RawMessage `json:"item"`
	Index    *count          `json:"output_index"`
	Response *responsesWhole `json:"response"`
}

// A responsesWhole is the answer as its last event has it.
type responsesWhole struct {
	Status     string            `json:"status"`
	Error      json.RawMessage   `json:"error"`
	Output     []json.RawMessage `json:"output"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		Input   count `json:"input_tokens"`
		InputOf struct {
			Cached  count `json:"cached_tokens"`
			Written count `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		Output   count `json:"output_tokens"`
		OutputOf struct {
			Reasoning count `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// A responsesItem is one item of the output.
type responsesItem struct {
	Type      string          `json:"type"`
	Status    string          `json:"status"`
	Phase     string          `json:"phase"`
	CallID    string          `json:"call_id"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Execution string          `json:"execution"`
	Arguments json.RawMessage `json:"arguments"`
	Summary   []responsesText `json:"summary"`
	Content   []responsesText `json:"content"`
}

type responsesText struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// A responsesDecoder is what is known of an answer so far.
type responsesDecoder struct {
	out
	sent    omit
	done    map[int]bool // items that were given, by their place in the output
	next    int          // the place of an item that comes without one
	calls   int
	refused bool
	ended   bool
}

// decodeResponses reads an answer. history is the conversation so far, whose
// ids no new call takes.
func decodeResponses(r io.Reader, history []llm.Message, sent omit) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		d := responsesDecoder{out: out{yield: yield, history: history}, sent: sent, done: map[int]bool{}}
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
			d.whole(data)
		default:
			d.stream(from)
		}
	}
}

// stream reads events to the end of the answer.
func (d *responsesDecoder) stream(r io.Reader) {
	for event, err := range provider.Events(r, mostEvent) {
		switch {
		case err != nil:
			d.fail(err)
		case string(event.Data) != "[DONE]":
			d.take(event.Name, event.Data)
		}
		if d.stopped || d.ended {
			return
		}
	}
	d.fail(io.ErrUnexpectedEOF)
}

func (d *responsesDecoder) take(name string, data []byte) {
	var e responsesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		d.fail(malformed("", err))
		return
	}
	if e.Type == "" {
		e.Type = name
	}
	switch e.Type {
	case "response.output_text.delta":
		d.fragment(e.Delta)
	case "response.refusal.delta":
		d.refused = true
		d.fragment(e.Delta)
	case "response.reasoning_summary_part.added":
		if e.Part > 0 {
			d.thought("\n\n")
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		d.thought(e.Delta)
	case "response.output_item.done":
		at := d.next
		if e.Index != nil {
			at = int(*e.Index)
		}
		d.item(at, e.Item)
	case "response.completed", "response.incomplete", "response.done", "response.failed", "response.cancelled":
		if e.Response == nil {
			d.fail(malformed("an end without its response", nil))
			return
		}
		d.end(e.Type, e.Response, data)
	case "error":
		d.fail(faultOf(0, data, d.sent))
	case "":
		d.fail(d.untyped(data))
	}
	// Other events are of no use here: they tell of progress, or repeat in
	// whole what came in parts.
}

// untyped is the error of an event without a type: a server's complaint, or
// not this wire at all.
func (d *responsesDecoder) untyped(data []byte) error {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &e) == nil && set(e.Error) {
		return faultOf(0, data, d.sent)
	}
	return malformed("an event without a type", nil)
}

// whole reads an answer that came as one object.
func (d *responsesDecoder) whole(data []byte) {
	var r responsesWhole
	if err := json.Unmarshal(data, &r); err != nil {
		d.fail(malformed("", err))
		return
	}
	if r.Status == "" {
		d.fail(d.untyped(data))
		return
	}
	d.end("response."+r.Status, &r, data)
}

// item emits the blocks of an item, once for each index.
func (d *responsesDecoder) item(at int, raw json.RawMessage) {
	if d.done[at] || d.stopped {
		return
	}
	if d.next >= mostCalls {
		d.fail(malformed("more than 1,000 items in one answer", nil))
		return
	}
	d.done[at] = true
	d.next = max(d.next, at) + 1
	var item responsesItem
	if err := json.Unmarshal(raw, &item); err != nil {
		d.fail(malformed("an item of the answer", err))
		return
	}
	switch item.Type {
	case "message":
		d.message(item)
	case "reasoning":
		// Marshal writes it as a store would, so that it is the same bytes
		// after one.
		opaque, err := json.Marshal(raw)
		if err == nil && d.grow(len(raw)) {
			d.block(llm.Block{Reasoning: &llm.Reasoning{Text: thoughtOf(item), Wire: string(model.Responses), Opaque: opaque}})
		}
	case "function_call":
		d.call(item, nil)
	case "tool_search_call":
		if item.Execution != "server" {
			d.call(item, []byte(`{"`+string(model.Responses)+`":"tool_search_call"}`))
		}
	}
}

// message emits a text. What already came in fragments is not shown again.
func (d *responsesDecoder) message(item responsesItem) {
	var text strings.Builder
	for _, part := range item.Content {
		text.WriteString(part.Text)
		text.WriteString(part.Refusal)
		d.refused = d.refused || part.Refusal != ""
	}
	shown := d.text.String()
	if rest, ok := strings.CutPrefix(text.String(), shown); ok {
		d.fragment(rest)
	}
	if item.Phase != "" && d.text.Len() > 0 {
		// The wire wants the phase back with the text, and a text has no place
		// for it. It stands before the text, which is not given yet.
		opaque, err := json.Marshal(map[string]string{"type": "message", "phase": item.Phase})
		if err == nil {
			d.emit(llm.Chunk{Block: &llm.Block{Reasoning: &llm.Reasoning{Wire: string(model.Responses), Opaque: opaque}}})
		}
	}
	d.flushText()
}

func thoughtOf(item responsesItem) string {
	var all []string
	for _, part := range item.Summary {
		all = append(all, part.Text)
	}
	if len(all) == 0 {
		for _, part := range item.Content {
			all = append(all, part.Text)
		}
	}
	return strings.Join(all, "\n\n")
}

// call emits a call. A call that the limit of the answer cut off is left out: the
// stop reason says so.
func (d *responsesDecoder) call(item responsesItem, opaque json.RawMessage) {
	if item.Status == "incomplete" || !d.grow(len(item.Arguments)) {
		return
	}
	args := []byte(plain(item.Arguments)) // a string, or for a search an object
	if len(args) == 0 || string(args) == "null" {
		args = []byte("{}")
	}
	name := item.Name
	if opaque != nil {
		name = searchTool(llm.Request{Messages: d.history}).Name
	}
	id := item.CallID
	if id == "" {
		id = item.ID
	}
	d.calls++
	d.block(llm.Block{Call: &llm.ToolCall{ID: d.fresh(id), Name: name, Arguments: args, Opaque: opaque}})
}

// end emits what only the last event has, and the last chunk.
func (d *responsesDecoder) end(kind string, r *responsesWhole, data []byte) {
	if kind == "response.failed" || kind == "response.cancelled" || r.Status == "failed" {
		if set(r.Error) {
			data = r.Error
		}
		d.fail(faultOf(0, data, d.sent))
		return
	}
	// Not piecemeal: a call that is given twice would be made twice.
	if d.next == 0 {
		for at, raw := range r.Output {
			d.item(at, raw)
		}
	}
	d.flushText()
	stop := llm.StopEnd
	switch {
	case kind == "response.incomplete" || r.Status == "incomplete":
		stop = llm.StopLength
		if r.Incomplete != nil && r.Incomplete.Reason == "content_filter" {
			stop = llm.StopRefuse
		}
	case d.refused:
		stop = llm.StopRefuse
	case d.calls > 0:
		stop = llm.StopCalls
	}
	usage := llm.Usage{}
	if u := r.Usage; u != nil {
		usage = normal(u.Input, u.InputOf.Cached, u.InputOf.Written, u.Output, u.OutputOf.Reasoning)
	}
	d.ended = true
	d.emit(llm.Chunk{Stop: stop, Usage: &usage})
}
