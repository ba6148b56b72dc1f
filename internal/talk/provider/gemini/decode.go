package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"ken/internal/talk/provider"
	"ken/llm"
)

// A response is one event of an answer.
type response struct {
	Candidates []candidate `json:"candidates"`
	Feedback   *struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *usage          `json:"usageMetadata"`
	Error json.RawMessage `json:"error"`
}

type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []part `json:"parts"`
	} `json:"content"`
	FinishReason  string `json:"finishReason"`
	FinishMessage string `json:"finishMessage"`
}

// A part is a piece of an answer. What Ken does not read of one is kept as it
// is, to be sent back.
type part struct {
	Text             *string       `json:"text,omitempty"`
	Thought          bool          `json:"thought,omitempty"`
	ThoughtSignature string        `json:"thoughtSignature,omitempty"`
	FunctionCall     *functionCall `json:"functionCall,omitempty"`

	InlineData          json.RawMessage `json:"inlineData,omitempty"`
	FileData            json.RawMessage `json:"fileData,omitempty"`
	ExecutableCode      json.RawMessage `json:"executableCode,omitempty"`
	CodeExecutionResult json.RawMessage `json:"codeExecutionResult,omitempty"`
	ToolCall            json.RawMessage `json:"toolCall,omitempty"`
	ToolResponse        json.RawMessage `json:"toolResponse,omitempty"`
}

// other reports whether it is something that has no block of its own.
func (p *part) other() bool {
	return p.InlineData != nil || p.FileData != nil || p.ExecutableCode != nil ||
		p.CodeExecutionResult != nil || p.ToolCall != nil || p.ToolResponse != nil
}

// bare reports whether it is a signature and nothing else.
func (p *part) bare() bool {
	return p.ThoughtSignature != "" && p.Text == nil && !p.Thought && p.FunctionCall == nil && !p.other()
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type usage struct {
	Prompt     tokens `json:"promptTokenCount"`
	Cached     tokens `json:"cachedContentTokenCount"`
	Candidates tokens `json:"candidatesTokenCount"`
	Thoughts   tokens `json:"thoughtsTokenCount"`
	ToolUse    tokens `json:"toolUsePromptTokenCount"`
}

// normal counts as [llm.Usage] does. The prompt counts what was cached already.
func (u *usage) normal() *llm.Usage {
	if u == nil {
		return &llm.Usage{}
	}
	input := int(u.Prompt) + int(u.ToolUse)
	return &llm.Usage{
		Input:      input,
		CachedRead: min(int(u.Cached), input),
		Output:     int(u.Candidates) + int(u.Thoughts),
		Thought:    int(u.Thoughts),
	}
}

// mostTokens is more than any answer has, and so little that nothing which adds
// numbers up runs over.
const mostTokens = 1 << 40

// tokens is a token count that a server reports. A value that is not a number
// becomes 0, and a number out of range becomes the nearest one in range.
type tokens int

func (n *tokens) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || f != f {
		f = 0
	}
	*n = tokens(max(0, min(f, mostTokens)))
	return nil
}

// decode reads an answer to req. One that ends without a reason was cut off.
func decode(events iter.Seq2[provider.Event, error], req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		d := decoder{yield: yield, req: req}
		for event, err := range events {
			switch {
			case err != nil && d.finish != "":
				// The answer itself is whole.
			case err != nil:
				d.fail(err)
			case string(event.Data) != "[DONE]": // some gateways say so
				d.event(event.Data)
			}
			if d.done {
				return
			}
		}
		if d.finish == "" {
			d.fail(&llm.Error{Kind: llm.Cut, Err: io.ErrUnexpectedEOF})
			return
		}
		d.end()
	}
}

// A decoder turns events into chunks.
type decoder struct {
	yield func(llm.Chunk, error) bool
	req   llm.Request
	done  bool // nothing more is yielded: the caller stopped, or an error was yielded

	text, thought strings.Builder // since the last block
	calls         int
	ids           map[string]bool // of calls, once one was needed
	next          int             // the number of the next id of ours
	finish        string
	message       string
	usage         *usage
}

func (d *decoder) say(c llm.Chunk) {
	if !d.done && !d.yield(c, nil) {
		d.done = true
	}
}

func (d *decoder) fail(err error) {
	if !d.done {
		d.done = true
		d.yield(llm.Chunk{}, err)
	}
}

func (d *decoder) event(data []byte) {
	var r response
	if err := json.Unmarshal(data, &r); err != nil {
		d.fail(&llm.Error{Kind: llm.Malformed, Err: fmt.Errorf("an event is not the wire's JSON: %w", err)})
		return
	}
	if r.Error != nil {
		e := classify(0, nil, data)
		if e == nil {
			e = &llm.Error{Kind: llm.Malformed, Message: string(r.Error)}
		}
		d.fail(e)
		return
	}
	if r.Usage != nil {
		d.usage = r.Usage
	}
	if r.Feedback != nil && r.Feedback.BlockReason != "" && d.finish == "" {
		d.finish = r.Feedback.BlockReason
	}
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if c.Index != 0 {
			continue // one was asked for
		}
		for j := range c.Content.Parts {
			d.part(&c.Content.Parts[j])
		}
		if c.FinishReason != "" && c.FinishReason != "FINISH_REASON_UNSPECIFIED" {
			d.finish, d.message = c.FinishReason, c.FinishMessage
		}
	}
}

func (d *decoder) part(p *part) {
	switch {
	case p.FunctionCall != nil:
		d.flush()
		d.call(p)
	case p.other() || p.bare():
		d.flush()
		d.keep(p, "")
	case p.Text == nil:
		// A kind of part that is newer than this wire, or none at all.
	case p.Thought:
		d.flushText()
		d.thought.WriteString(*p.Text)
		if *p.Text != "" {
			d.say(llm.Chunk{Thought: *p.Text})
		}
		if p.ThoughtSignature != "" {
			d.flushThought(p.ThoughtSignature)
		}
	default:
		d.flushThought("")
		d.textPart(p)
	}
}

// textPart adds a piece of text. A signed one is a part of its own, and so is
// a block of its own: its signature must come back on that part.
func (d *decoder) textPart(p *part) {
	signed := p.ThoughtSignature != ""
	if signed {
		d.flushText()
	}
	d.text.WriteString(*p.Text)
	if *p.Text != "" {
		d.say(llm.Chunk{Text: *p.Text})
	}
	if !signed {
		return
	}
	if *p.Text == "" {
		d.keep(p, "") // only a signature, on a part that stays empty
		return
	}
	d.flushText()
	d.keep(&part{ThoughtSignature: p.ThoughtSignature}, "")
}

// keep makes a block of a part that is not shown but that the history needs.
func (d *decoder) keep(p *part, text string) {
	opaque, err := json.Marshal(p)
	if err != nil {
		d.fail(&llm.Error{Kind: llm.Malformed, Err: err})
		return
	}
	d.say(llm.Chunk{Block: &llm.Block{Reasoning: &llm.Reasoning{Text: text, Wire: wire, Opaque: opaque}}})
}

func (d *decoder) flush() {
	d.flushThought("")
	d.flushText()
}

func (d *decoder) flushText() {
	if d.text.Len() > 0 {
		text := d.text.String()
		d.text.Reset()
		d.say(llm.Chunk{Block: &llm.Block{Text: text}})
	}
}

func (d *decoder) flushThought(signature string) {
	if d.thought.Len() > 0 || signature != "" {
		text := d.thought.String()
		d.thought.Reset()
		d.keep(&part{Text: &text, Thought: true, ThoughtSignature: signature}, text)
	}
}

func (d *decoder) call(p *part) {
	args := []byte(p.FunctionCall.Args)
	if len(args) == 0 || string(args) == "null" {
		args = []byte("{}")
	}
	call := &llm.ToolCall{ID: d.id(p.FunctionCall.ID), Name: p.FunctionCall.Name, Arguments: args}
	if p.ThoughtSignature != "" {
		call.Opaque, _ = json.Marshal(&part{ThoughtSignature: p.ThoughtSignature}) // a string always can
	}
	if d.calls++; d.calls > mostCalls {
		d.fail(&llm.Error{Kind: llm.Malformed, Err: fmt.Errorf("the answer has more than %d calls", mostCalls)})
		return
	}
	d.say(llm.Chunk{Block: &llm.Block{Call: call}})
}

// mostCalls is more than any answer has calls.
const mostCalls = 4096

// id returns an id for a call that no other call of the conversation has: the
// wire's own id if it is unique, else the next number. It depends only on the
// request and the answer.
func (d *decoder) id(given string) string {
	if d.ids == nil {
		d.ids = map[string]bool{}
		for _, m := range d.req.Messages {
			for _, c := range callsOf(m) {
				d.ids[c.ID] = true
				if n, err := strconv.Atoi(strings.TrimPrefix(c.ID, made)); err == nil && n < 1<<30 {
					d.next = max(d.next, n)
				}
			}
		}
	}
	if !usable(given) || d.ids[given] {
		for {
			d.next++
			if given = made + strconv.Itoa(d.next); !d.ids[given] {
				break
			}
		}
	}
	d.ids[given] = true
	return given
}

// usable reports whether an id can stand in the history: also another vendor
// may have to take it one day.
func usable(id string) bool {
	if id == "" || len(id) > 64 || strings.HasPrefix(id, made) {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) < 0
}

func (d *decoder) end() {
	d.flush()
	stop := llm.StopRefuse
	switch d.finish {
	case "STOP":
		stop = llm.StopEnd
		if d.calls > 0 {
			stop = llm.StopCalls
		}
	case "MAX_TOKENS", "CONTINUATION":
		stop = llm.StopLength
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		if !d.rescue() {
			d.fail(&llm.Error{
				Kind: llm.Malformed, Code: d.finish, Message: d.message,
				Fix: "ask again: the model wrote a call that its provider could not read",
			})
			return
		}
		stop = llm.StopCalls
	}
	d.say(llm.Chunk{Stop: stop, Usage: d.usage.normal()})
}

// rescue makes a call of what the provider could not parse: the tool is the one
// that its message names, and the arguments are the text after the name. They
// are hardly ever JSON; the caller answers the call like any other with malformed
// arguments.
func (d *decoder) rescue() bool {
	name, args := "", ""
	for _, t := range d.req.Tools {
		if rest, ok := called(d.message, t.Name); ok && len(t.Name) > len(name) {
			name, args = t.Name, rest
		}
	}
	if name == "" {
		return d.calls > 0
	}
	if inner, ok := strings.CutPrefix(args, "("); ok {
		args = strings.TrimSuffix(strings.TrimSpace(inner), ")")
	}
	d.call(&part{FunctionCall: &functionCall{Name: name, Args: json.RawMessage(args)}})
	return true
}

// called returns what comes after a name where a message calls it: as a word of
// its own, with a bracket behind it.
func called(message, name string) (rest string, ok bool) {
	if name == "" {
		return "", false
	}
	for from := 0; ; {
		i := strings.Index(message[from:], name)
		if i < 0 {
			return "", false
		}
		i += from
		from = i + len(name)
		rest = strings.TrimLeft(message[from:], " ")
		if rest != "" && (rest[0] == '(' || rest[0] == '{') && (i == 0 || !usable(message[i-1:i])) {
			return rest, true
		}
	}
}
