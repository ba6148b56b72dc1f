package chatapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/envelope"
	"ken/internal/talk/session"
	"ken/llm"
)

const (
	mostResult    = 16 << 10 // of a result, in bytes
	mostArguments = 64 << 10
)

const (
	toolInvoke = capability.ToolInvoke
	toolFinish = capability.ToolFinish
	toolIntent = capability.ToolIntent
)

// A turnBuilder makes turns of entries, the way a person reads them.
type turnBuilder struct {
	turns   []*Turn
	offers  map[string]session.Offer // by the name that the model calls
	calls   map[string]*Item         // by id, the newest
	refused map[string]string        // kinds by the id of calls whose results come next
	command *session.CommandResult   // of the command whose output comes next
	intent  string                   // that counts in the turn
}

// turnsOf returns the turns that entries tell of, oldest first.
func turnsOf(entries []session.Entry) []*Turn {
	f := &turnBuilder{offers: map[string]session.Offer{}, calls: map[string]*Item{}, refused: map[string]string{}}
	for i := range entries {
		f.add(&entries[i])
	}
	return f.turns
}

// turn returns the turn of an entry, or none where it has not begun.
func (f *turnBuilder) turn(e *session.Entry) *Turn {
	if n := len(f.turns); n > 0 && f.turns[n-1].Turn == e.Turn {
		return f.turns[n-1]
	}
	return nil
}

func (f *turnBuilder) add(e *session.Entry) {
	for _, o := range e.Offers {
		f.offers[o.Tool] = o
	}
	if e.Kind == session.User && f.turn(e) == nil {
		f.turns = append(f.turns, &Turn{Turn: e.Turn, Time: e.Time, Items: []*Item{}})
		f.intent = ""
	}
	if e.Kind == session.Results { // also of calls of the turn before
		f.results(e)
	}
	t := f.turn(e)
	if t == nil {
		return
	}
	switch e.Kind {
	case session.User:
		t.said(e)
	case session.Assistant:
		f.answer(t, e)
	case session.Added:
		f.commandResult(t, e)
	case session.Summary:
		t.Items = append(t.Items, &Item{Type: "notice", Name: "compact", Text: "Earlier messages were summarised for the model."})
	case session.Marker:
		t.Items = append(t.Items, &Item{Type: "notice", Name: "compact", Text: "The model no longer gets the oldest messages."})
	case session.Note:
		f.note(t, e)
	}
	if e.Usage != nil {
		if t.Usage == nil {
			t.Usage = &llm.Usage{}
		}
		t.Usage.Add(*e.Usage)
	}
	t.Cost += e.Cost
}

func (t *Turn) said(e *session.Entry) {
	var parts []string
	for i := range e.Blocks {
		if b := &e.Blocks[i]; b.Image != nil {
			t.Images++
		} else if text := strings.TrimSpace(b.Text); text != "" {
			parts = append(parts, text)
		}
	}
	t.Said = strings.Join(parts, "\n")
}

func (f *turnBuilder) note(t *Turn, e *session.Entry) {
	switch n := session.ReadNote(e).(type) {
	case session.Ended:
		t.End, t.Why = n.Reason, n.Why
	case session.Intended:
		f.intent = n.Intent
	case session.Command:
		t.Command, t.Said = true, n.Line
	case session.CommandResult:
		f.command = &n
	case session.CallRefused:
		f.refused[n.ID] = n.Kind
	}
}

// answer takes what the model said and called.
func (f *turnBuilder) answer(t *Turn, e *session.Entry) {
	for i := range e.Blocks {
		b := &e.Blocks[i]
		switch {
		case b.Reasoning != nil && strings.TrimSpace(b.Reasoning.Text) != "":
			t.Items = append(t.Items, &Item{Type: "thought", Text: b.Reasoning.Text})
		case b.Call != nil:
			item := f.call(b.Call)
			t.Items = append(t.Items, item)
			f.calls[item.ID] = item
			if item.Target == toolFinish {
				var in struct{ Answer string }
				if json.Unmarshal(item.Arguments, &in) == nil && strings.TrimSpace(in.Answer) != "" {
					t.Items = append(t.Items, &Item{Type: "text", Text: in.Answer})
				}
			}
		case strings.TrimSpace(b.Text) != "":
			t.Items = append(t.Items, &Item{Type: "text", Text: b.Text})
		}
	}
}

// call returns a call as what is really called. It is the envelope itself only if
// that cannot be read.
func (f *turnBuilder) call(c *llm.ToolCall) *Item {
	item := &Item{Type: "call", ID: c.ID, Target: c.Name}
	args := c.Arguments
	if c.Name == toolInvoke {
		if in, err := envelope.Read(c.Arguments); err == nil {
			item.Target, item.Action, args = in.Capability, in.Action, in.Arguments
		}
	}
	if o, ok := f.offers[item.Target]; ok {
		item.Target = string(o.ID)
		if o.Action != "" {
			item.Action = o.Action
		}
	}
	item.Arguments = argumentsOf(args)
	return item
}

// argumentsOf returns arguments as they are where they are JSON, else as a text.
func argumentsOf(args []byte) json.RawMessage {
	args = bytes.TrimSpace(args)
	switch {
	case len(args) == 0:
		return nil
	case len(args) <= mostArguments && json.Valid(args):
		return json.RawMessage(args)
	}
	text, cut := beginning(string(args), mostArguments)
	if cut {
		text += fmt.Sprintf("… [%d of %d bytes]", len(text), len(args))
	}
	out, _ := json.Marshal(text) // a text always marshals
	return out
}

// results adds the results in an entry to their calls.
func (f *turnBuilder) results(e *session.Entry) {
	for i := range e.Blocks {
		r := e.Blocks[i].Result
		if r == nil || f.calls[r.ID] == nil {
			continue
		}
		item := f.calls[r.ID]
		if item.Target != toolIntent {
			item.Intent = f.intent
		}
		item.Result = resultOf(r)
		item.Result.Kind = f.kind(r.ID)
	}
}

// kind returns how the call with an id was refused, once: ids come again.
func (f *turnBuilder) kind(id string) string {
	kind := f.refused[id]
	delete(f.refused, id)
	return kind
}

func resultOf(r *llm.ToolResult) *CallResult {
	out := &CallResult{Failed: r.Failed}
	var parts []string
	for i := range r.Blocks {
		switch b := &r.Blocks[i]; {
		case b.Image != nil:
			out.Images++
		case b.Text != "":
			parts = append(parts, b.Text)
		}
	}
	whole := strings.Join(parts, "\n")
	out.Handle = handleIn(whole)
	out.Text, out.Cut = beginning(whole, mostResult)
	return out
}

// handleIn finds the handle by which a text says that the rest can be read. It is
// what a model would use; whether it is anybody's is judged when it is used.
func handleIn(text string) string {
	const word = "handle "
	at := strings.LastIndex(text, word)
	if at < 0 {
		return ""
	}
	rest := text[at+len(word):]
	end := strings.IndexFunc(rest, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
	if end < 0 {
		end = len(rest)
	}
	if handle := rest[:end]; len(handle) >= 16 && len(handle) <= 128 {
		return handle
	}
	return ""
}

func beginning(s string, most int) (text string, cut bool) {
	if len(s) <= most {
		return s, false
	}
	at := most
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at], true
}

// commandResult takes what a command that was typed came to. The model was told
// of it in a fence, which people need not see.
func (f *turnBuilder) commandResult(t *Turn, e *session.Entry) {
	if !t.Command || len(e.Blocks) != 1 {
		return
	}
	head, text, _ := strings.Cut(e.Blocks[0].Text, "\n")
	if at := strings.LastIndex(text, "\n[[end "); at >= 0 {
		text = text[:at]
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(t.Said), "/"), " ")
	id := fmt.Sprintf("command_%d", t.Turn)
	result := &CallResult{Handle: handleIn(text)}
	if c := f.command; c != nil && c.ID == id {
		result.Failed, result.Kind, result.Job = c.Failed, c.Kind, c.Job
	} else { // an older session says it only in words
		result.Failed, result.Kind = strings.Contains(head, "It did not work"), f.kind(id)
	}
	f.command = nil
	result.Text, result.Cut = beginning(text, mostResult)
	t.Items = append(t.Items, &Item{Type: "call", ID: id, Target: name, Result: result})
}
