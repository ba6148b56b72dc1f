package openai

import (
	"crypto/rand"
	"encoding/json"
	"strings"

	"ken/llm"
)

const (
	mostAnswer = 16 << 20 // bytes of text, thoughts and arguments
	mostCalls  = 1000
)

// An out yields chunks and remembers the text that no block holds yet. Once the
// caller has stopped, or an error was yielded, it yields no more.
type out struct {
	yield   func(llm.Chunk, error) bool
	stopped bool
	text    strings.Builder
	size    int
	history []llm.Message
	ids     map[string]bool // that are taken; nil: not looked at yet
}

func (o *out) emit(c llm.Chunk) {
	if !o.stopped && !o.yield(c, nil) {
		o.stopped = true
	}
}

func (o *out) fail(err error) {
	if !o.stopped {
		o.stopped = true
		o.yield(llm.Chunk{}, err)
	}
}

// grow counts bytes that are kept, and ends an answer that has no end.
func (o *out) grow(n int) bool {
	o.size += n
	if o.size > mostAnswer {
		o.fail(malformed("the answer has more than 16 MiB", nil))
	}
	return !o.stopped
}

func (o *out) fragment(text string) {
	if text != "" && o.grow(len(text)) {
		o.text.WriteString(text)
		o.emit(llm.Chunk{Text: text})
	}
}

func (o *out) thought(text string) {
	if text != "" && o.grow(len(text)) {
		o.emit(llm.Chunk{Thought: text})
	}
}

// flushText emits the text of the last fragments as a block.
func (o *out) flushText() {
	if o.text.Len() > 0 {
		text := o.text.String()
		o.text.Reset()
		o.emit(llm.Chunk{Block: &llm.Block{Text: text}})
	}
}

// block emits a block that is not text, after the text before it.
func (o *out) block(b llm.Block) {
	o.flushText()
	o.emit(llm.Chunk{Block: &b})
}

// fresh returns the id of a new call: the server's, or one made here where it has
// none or one that the conversation knows already, since ids pair calls with
// results.
func (o *out) fresh(id string) string {
	if o.ids == nil {
		o.ids = map[string]bool{}
		for _, m := range o.history {
			for _, b := range m.Blocks {
				if b.Call != nil {
					o.ids[b.Call.ID] = true
				}
			}
		}
	}
	for id == "" || o.ids[id] {
		id = "call_" + strings.ToLower(rand.Text()[:20])
	}
	o.ids[id] = true
	return id
}

// A count is a number of a server's that need not be whole, and where anything
// else counts as none.
type count int

func (c *count) UnmarshalJSON(b []byte) error {
	var f float64
	if json.Unmarshal(b, &f) != nil || f < 0 || f > 1<<53 {
		f = 0
	}
	*c = count(f)
	return nil
}

// normal makes usage such that parts are never more than the whole.
func normal(input, read, write, output, thought count) llm.Usage {
	read = min(read, input)
	return llm.Usage{
		Input: int(input), CachedRead: int(read), CachedWrite: int(min(write, input-read)),
		Output: int(output), Thought: int(min(thought, output)),
	}
}
