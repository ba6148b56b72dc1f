package gemini

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ken/llm"
)

// noSignature is what the vendor takes in place of a signature that was never
// given: the call was made by another model.
const noSignature = "skip_thought_signature_validator"

// made begins the ids of calls that came without one. They are never sent.
const made = "gemini-call-"

// encode makes the body of a request. The same request gives the same bytes,
// and what stands before the end of contents only grows with the conversation:
// tools, system and messages come first, and behind them what may change from
// request to request.
func encode(req llm.Request, t traits) ([]byte, error) {
	w := writer{traits: t, b: make([]byte, 0, size(req))}
	w.raw(`{`)
	if err := w.tools(req.Tools); err != nil {
		return nil, err
	}
	if req.System != "" {
		w.raw(`"systemInstruction":{"parts":[{"text":`)
		w.text(req.System)
		w.raw(`}]},`)
	}
	w.raw(`"contents":[`)
	var calls []*llm.ToolCall // of the last message that has some
	for _, m := range req.Messages {
		if err := w.message(m, calls); err != nil {
			return nil, err
		}
		if own := callsOf(m); own != nil {
			calls = own
		}
	}
	w.raw(`]`)
	w.choice(req)
	if err := w.generation(req); err != nil {
		return nil, err
	}
	w.raw(`}`)
	return w.b, nil
}

// size is about how large a body gets.
func size(req llm.Request) int {
	n := 512 + len(req.System)
	for _, t := range req.Tools {
		n += 96 + len(t.Description) + len(t.Schema)
	}
	for _, m := range req.Messages {
		n += 32
		for _, b := range m.Blocks {
			n += blockSize(b)
		}
	}
	return n + n/16
}

func blockSize(b llm.Block) int {
	n := 32 + len(b.Text)
	switch {
	case b.Image != nil:
		n += base64.StdEncoding.EncodedLen(len(b.Image.Data))
	case b.Call != nil:
		n += 64 + len(b.Call.Arguments) + len(b.Call.Opaque)
	case b.Reasoning != nil:
		n += len(b.Reasoning.Opaque)
	case b.Result != nil:
		n += 64
		for _, inner := range b.Result.Blocks {
			n += blockSize(inner)
		}
	}
	return n
}

func callsOf(m llm.Message) []*llm.ToolCall {
	var list []*llm.ToolCall
	for _, b := range m.Blocks {
		if b.Call != nil {
			list = append(list, b.Call)
		}
	}
	return list
}

// A writer builds a body.
type writer struct {
	traits
	b        []byte
	list     int // parts or contents written where one is being written
	declared map[string]bool
}

func (w *writer) raw(s string) { w.b = append(w.b, s...) }

// tools declares them, each with its JSON Schema whole.
func (w *writer) tools(tools []llm.Tool) error {
	if len(tools) == 0 {
		return nil
	}
	w.declared = make(map[string]bool, len(tools))
	w.raw(`"tools":[{"functionDeclarations":[`)
	for i, t := range tools {
		if i > 0 {
			w.raw(`,`)
		}
		w.declared[t.Name] = true
		w.raw(`{"name":`)
		w.text(t.Name)
		w.raw(`,"description":`)
		w.text(t.Description)
		schema := bytes.TrimSpace(t.Schema)
		switch {
		case len(schema) == 0 || string(schema) == "null":
		case !object(schema):
			return &llm.Error{
				Kind: llm.Invalid, Message: fmt.Sprintf("the schema of the tool %.64q is no JSON object", t.Name),
				Fix: "correct its schema where the tool comes from",
			}
		default:
			w.raw(`,"parametersJsonSchema":`)
			w.b = append(w.b, schema...)
		}
		w.raw(`}`)
	}
	w.raw(`]}],`)
	return nil
}

// choice narrows which functions may be called. A list of none would mean all
// to the wire, so then it forbids them.
func (w *writer) choice(req llm.Request) {
	if len(w.declared) == 0 {
		return
	}
	w.raw(`,"toolConfig":{"functionCallingConfig":{"mode":`)
	defer w.raw(`}}`)
	if req.Allowed == nil {
		w.raw(`"AUTO"`)
		return
	}
	var names []string
	for _, t := range req.Tools { // in the order of the tools, whatever that of the names is
		if slices.Contains(req.Allowed, t.Name) {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		w.raw(`"NONE"`)
		return
	}
	w.raw(`"VALIDATED","allowedFunctionNames":[`)
	for i, name := range names {
		if i > 0 {
			w.raw(`,`)
		}
		w.text(name)
	}
	w.raw(`]`)
}

// generation says how much may be answered and thought.
func (w *writer) generation(req llm.Request) error {
	var fields []string
	if req.MaxTokens > 0 {
		fields = append(fields, `"maxOutputTokens":`+strconv.Itoa(req.MaxTokens))
	}
	think := ""
	switch req.Effort {
	case "":
	case "low", "medium", "high":
		// The budgets are those that the vendor gives to the same words.
		think = `,"thinkingBudget":` + map[string]string{"low": "1024", "medium": "8192", "high": "24576"}[req.Effort]
		if w.levels {
			think = `,"thinkingLevel":"` + strings.ToUpper(req.Effort) + `"`
		}
	default:
		return &llm.Error{
			Kind: llm.Invalid, Message: fmt.Sprintf("the effort %.20q is not known", req.Effort),
			Fix: "use low, medium or high",
		}
	}
	if w.thinks {
		fields = append(fields, `"thinkingConfig":{"includeThoughts":true`+think+`}`)
	}
	if len(fields) > 0 {
		w.raw(`,"generationConfig":{` + strings.Join(fields, ",") + `}`)
	}
	return nil
}

// message writes one entry of contents, or nothing where nothing of it is for
// this wire. calls are those that its results answer.
//
// The wire refuses calls of functions that the request does not declare, as
// one that sums up a conversation does not: they and their results are told in
// words.
func (w *writer) message(m llm.Message, calls []*llm.ToolCall) error {
	start, before := len(w.b), w.list
	if w.list > 0 {
		w.raw(`,`)
	}
	role := "user"
	if m.Role == llm.Assistant {
		role = "model"
	}
	w.raw(`{"role":"` + role + `","parts":[`)
	w.list = 0
	if err := w.results(m, calls); err != nil {
		return err
	}
	first := true // no call was written yet
	for i, b := range m.Blocks {
		switch {
		case b.Tools != nil:
			return unsupported(llm.Inline)
		case b.Text != "":
			w.part(`{"text":`)
			w.text(b.Text)
			if i+1 < len(m.Blocks) {
				w.signature(signs(m.Blocks[i+1]))
			}
			w.raw(`}`)
		case b.Image != nil:
			w.part(`{"inlineData":`)
			w.blob(b.Image)
			w.raw(`}`)
		case b.Call != nil && !w.declared[b.Call.Name]:
			w.part(`{"text":`)
			w.text("[called " + b.Call.Name + " with " + string(b.Call.Arguments) + "]")
			w.raw(`}`)
		case b.Call != nil:
			w.call(b.Call, first)
			first = false
		case b.Reasoning != nil:
			w.reasoning(b, i > 0 && m.Blocks[i-1].Text != "")
		}
	}
	if w.list == 0 {
		w.b, w.list = w.b[:start], before
		return nil
	}
	w.raw(`]}`)
	w.list = before + 1
	return nil
}

// part begins one.
func (w *writer) part(s string) {
	if w.list > 0 {
		w.raw(`,`)
	}
	w.list++
	w.raw(s)
}

// signs returns the signature that a block has for the text before it.
func signs(b llm.Block) string {
	if b.Reasoning == nil || b.Reasoning.Wire != wire {
		return ""
	}
	var p part
	if json.Unmarshal(b.Reasoning.Opaque, &p) != nil || !p.bare() {
		return ""
	}
	return p.ThoughtSignature
}

func (w *writer) signature(s string) {
	if s != "" {
		w.raw(`,"thoughtSignature":`)
		w.text(s)
	}
}

// reasoning sends a part back as it came. One that signs the text before it
// went with that text.
func (w *writer) reasoning(b llm.Block, afterText bool) {
	opaque := bytes.TrimSpace(b.Reasoning.Opaque)
	if b.Reasoning.Wire != wire || !object(opaque) || afterText && signs(b) != "" {
		return
	}
	w.part("")
	w.b = append(w.b, opaque...)
}

// call sends a call back with its signature. The wire takes only objects for
// arguments: what the model wrote instead stands in one under a name of ours.
func (w *writer) call(c *llm.ToolCall, first bool) {
	w.part(`{"functionCall":{`)
	w.id(c.ID)
	w.raw(`"name":`)
	w.text(c.Name)
	w.raw(`,"args":`)
	args := bytes.TrimSpace(c.Arguments)
	switch {
	case len(args) == 0:
		w.raw(`{}`)
	case object(args):
		w.b = append(w.b, args...)
	default:
		w.raw(`{"raw":`)
		w.text(string(c.Arguments))
		w.raw(`}`)
	}
	w.raw(`}`)
	var p part
	if json.Unmarshal(c.Opaque, &p) == nil && p.ThoughtSignature != "" {
		w.signature(p.ThoughtSignature)
	} else if first && w.signed {
		w.signature(noSignature)
	}
	w.raw(`}`)
}

func (w *writer) id(id string) {
	if id != "" && !strings.HasPrefix(id, made) {
		w.raw(`"id":`)
		w.text(id)
		w.raw(`,`)
	}
}
