package anthropic

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"ken/internal/jsonappend"
	"ken/internal/talk/provider"
	"ken/llm"
)

const (
	mostEvent  = 8 << 20 // bytes
	mostBlocks = 4096    // of one answer
)

// An event is any event of the wire: the fields that are used of all of them.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"`
	Block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		Partial    string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
	Error fault `json:"error"`
}

// usage is counted up over an answer; what an event does not tell is nil.
type usage struct {
	Input   *tokens `json:"input_tokens"`
	Written *tokens `json:"cache_creation_input_tokens"`
	Read    *tokens `json:"cache_read_input_tokens"`
	Output  *tokens `json:"output_tokens"`
	Details struct {
		Thinking *tokens `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// mostTokens is more than any answer has, and so little that nothing which adds
// numbers up runs over.
const mostTokens = 1 << 40

// tokens is a token count that a server reports. A value that is not a number
// becomes 0, and a number out of range becomes the nearest one in range.
type tokens int

func (n *tokens) UnmarshalJSON(b []byte) error {
	// A number that is too large for any is still read as the largest.
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || f != f {
		f = 0
	}
	*n = tokens(max(0, min(f, mostTokens)))
	return nil
}

// A counter keeps the latest number of each kind.
type counter struct {
	input, written, read, output, thought int
}

func (c *counter) take(u usage) {
	for _, n := range []struct {
		to   *int
		from *tokens
	}{{&c.input, u.Input}, {&c.written, u.Written}, {&c.read, u.Read}, {&c.output, u.Output}, {&c.thought, u.Details.Thinking}} {
		if n.from != nil {
			*n.to = int(*n.from)
		}
	}
}

// usage counts all input, which the wire tells apart by what the cache did.
func (c *counter) usage() *llm.Usage {
	return &llm.Usage{
		Input:       c.input + c.read + c.written,
		CachedRead:  c.read,
		CachedWrite: c.written,
		Output:      c.output,
		Thought:     c.thought,
	}
}

// An open block is one whose end has not come.
type open struct {
	index     int
	kind      string
	id, name  string
	text      []byte // or thoughts, or arguments
	signature []byte
	data      string
	input     json.RawMessage
}

// An answer is the state of a stream.
type answer struct {
	uses   features
	yield  func(llm.Chunk, error) bool
	open   []*open
	blocks int
	calls  bool
	held   *llm.Block // a call without arguments, of which it is not known yet whether it is whole
	stop   string
	count  counter
	scrap  event // used again for each event
}

// read turns a stream into chunks. A stream without its end is cut.
func read(body io.Reader, uses features, yield func(llm.Chunk, error) bool) {
	a := &answer{uses: uses, yield: yield}
	for ev, err := range provider.Events(body, mostEvent) {
		if err != nil {
			yield(llm.Chunk{}, provider.Broken(err))
			return
		}
		if !a.event(ev.Data) {
			return
		}
	}
	yield(llm.Chunk{}, provider.Broken(io.ErrUnexpectedEOF))
}

// event takes one event, and says whether to read on.
func (a *answer) event(data []byte) bool {
	e := &a.scrap
	*e = event{}
	if err := json.Unmarshal(data, e); err != nil {
		a.yield(llm.Chunk{}, &llm.Error{Kind: llm.Malformed, Message: "an event is not JSON of this wire: " + err.Error()})
		return false
	}
	switch e.Type {
	case "message_start":
		a.count.take(e.Message.Usage)
	case "content_block_start":
		return a.start(e)
	case "content_block_delta":
		return a.delta(e)
	case "content_block_stop":
		return a.end(e.Index)
	case "message_delta":
		a.count.take(e.Usage)
		if e.Delta.StopReason != "" {
			a.stop = e.Delta.StopReason
		}
	case "message_stop":
		a.finish()
		return false
	case "error":
		a.yield(llm.Chunk{}, a.uses.failure(0, e.Error))
		return false
	}
	return true // pings, and what the wire learns later
}

func (a *answer) start(e *event) bool {
	if a.blocks++; a.blocks > mostBlocks {
		a.yield(llm.Chunk{}, &llm.Error{Kind: llm.Malformed, Message: "the answer has more than " + strconv.Itoa(mostBlocks) + " blocks"})
		return false
	}
	if !a.release(false) {
		return false
	}
	b := &open{
		index: e.Index, kind: e.Block.Type, id: e.Block.ID, name: e.Block.Name,
		signature: []byte(e.Block.Signature), data: e.Block.Data, input: e.Block.Input,
	}
	if b.kind == "tool_use" && b.id == "" {
		b.id = "call_" + strings.ToLower(rand.Text()) // some servers have none, but results need one
	}
	a.open = append(a.open, b)
	return a.fragment(b, e.Block.Text, e.Block.Thinking)
}

func (a *answer) delta(e *event) bool {
	at := slices.IndexFunc(a.open, func(b *open) bool { return b.index == e.Index })
	if at < 0 {
		a.yield(llm.Chunk{}, &llm.Error{Kind: llm.Malformed, Message: "a piece of block " + strconv.Itoa(e.Index) + ", which has not begun"})
		return false
	}
	b := a.open[at]
	b.text = append(b.text, e.Delta.Partial...)
	b.signature = append(b.signature, e.Delta.Signature...)
	return a.fragment(b, e.Delta.Text, e.Delta.Thinking)
}

// fragment passes on a piece of text or of thought.
func (a *answer) fragment(b *open, text, thought string) bool {
	b.text = append(append(b.text, text...), thought...)
	if text != "" && !a.yield(llm.Chunk{Text: text}, nil) {
		return false
	}
	return thought == "" || a.yield(llm.Chunk{Thought: thought}, nil)
}

// end closes a block and passes it on whole.
func (a *answer) end(index int) bool {
	at := slices.IndexFunc(a.open, func(b *open) bool { return b.index == index })
	if at < 0 {
		return true
	}
	b := a.open[at]
	a.open = slices.Delete(a.open, at, at+1)
	block := b.whole()
	if block == nil {
		return true
	}
	if !a.release(false) {
		return false
	}
	if block.Call != nil {
		a.calls = true
		if len(block.Call.Arguments) == 0 {
			a.held = block
			return true
		}
	}
	return a.yield(llm.Chunk{Block: block}, nil)
}

// release passes on a call that came without arguments: with none, or, where
// the answer was cut within it, as it came, which is not a call of its own.
func (a *answer) release(cut bool) bool {
	if a.held == nil {
		return true
	}
	block := a.held
	a.held = nil
	if !cut {
		block.Call.Arguments = []byte(`{}`)
	}
	return a.yield(llm.Chunk{Block: block}, nil)
}

// whole returns the block, or nil where there is nothing to keep.
func (b *open) whole() *llm.Block {
	switch b.kind {
	case "text":
		if len(b.text) == 0 {
			return nil
		}
		return &llm.Block{Text: string(b.text)}
	case "tool_use":
		args := b.text
		var none map[string]json.RawMessage
		if len(args) == 0 && (json.Unmarshal(b.input, &none) != nil || len(none) > 0) {
			args = b.input // some servers send them at once
		}
		return &llm.Block{Call: &llm.ToolCall{ID: b.id, Name: b.name, Arguments: args}}
	case "thinking":
		opaque := jsonappend.String([]byte(`{"type":"thinking","thinking":`), string(b.text))
		opaque = jsonappend.String(append(opaque, `,"signature":`...), string(b.signature))
		return &llm.Block{Reasoning: &llm.Reasoning{Text: string(b.text), Wire: wire, Opaque: append(opaque, '}')}}
	case "redacted_thinking":
		opaque := jsonappend.String([]byte(`{"type":"redacted_thinking","data":`), b.data)
		return &llm.Block{Reasoning: &llm.Reasoning{Wire: wire, Opaque: append(opaque, '}')}}
	}
	return nil // a block of the vendor's own tools, which are never asked for
}

// finish passes on what was left open and the end.
func (a *answer) finish() {
	for len(a.open) > 0 {
		if !a.end(a.open[0].index) {
			return
		}
	}
	reason := a.reason()
	if !a.release(reason == llm.StopLength || reason == llm.StopRefuse) {
		return
	}
	a.yield(llm.Chunk{Stop: reason, Usage: a.count.usage()}, nil)
}

// reason says why the answer ended. One that only pauses, or that filled the
// window, is as unfinished as one that ran into the limit.
func (a *answer) reason() llm.StopReason {
	switch a.stop {
	case "max_tokens", "model_context_window_exceeded", "pause_turn":
		return llm.StopLength
	case "refusal":
		return llm.StopRefuse
	}
	if a.calls {
		return llm.StopCalls
	}
	return llm.StopEnd
}
