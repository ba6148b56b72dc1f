package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/envelope"
	"ken/internal/talk/deliver"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

const (
	secondLook = 150 * time.Millisecond // after which finding is tried once more
	mostWhole  = 200                    // maximum number of tools, and of other entries, for a complete list
	recent     = 4                      // messages and turns before that count
)

// find picks what matters for the message. If that breaks, the turn goes on
// with less and says so.
func (t *turn) find() (door.Found, door.Pending, error) {
	q := t.query()
	found, pending, err := t.look(q)
	if err != nil && t.ctx.Err() == nil {
		select {
		case <-t.ctx.Done():
		case <-time.After(secondLook):
		}
		if found, pending, err = t.look(q); err == nil {
			t.notice("degraded", "finding capabilities worked only the second time")
		}
	}
	switch {
	case t.ctx.Err() != nil:
		return found, pending, t.ctx.Err()
	case err != nil && t.terms.Closed:
		return found, pending, &capability.Error{Kind: capability.Unavailable, Op: "find capabilities", Err: err, Fix: "see ken doctor; toolFailureMode fail_open goes on without"}
	case err != nil:
		t.notice("degraded", "nothing was found, because finding broke: "+err.Error()+"; "+toolDiscover+" is still there")
		return door.Found{}, door.Pending{}, nil
	}
	for _, text := range found.Degraded {
		t.notice("degraded", text)
	}
	return found, pending, nil
}

func (t *turn) look(q door.Query) (found door.Found, pending door.Pending, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it broke: %s", untrusted.Line(fmt.Sprint(p), 200))
		}
	}()
	return t.e.cfg.Door.Look(t.ctx, t.view, q)
}

// query asks for what fits the message and, less, those before it.
func (t *turn) query() door.Query {
	q := door.Query{Text: t.in.Text, Scope: t.scope(), Now: t.e.cfg.Now(), Override: t.in.Override}
	used := map[capability.ID]bool{}
	for i := len(t.live) - 1; i >= 0; i-- {
		e := &t.live[i]
		q.Conversation += e.Tokens
		switch {
		case len(q.Before) < recent && e.Kind == session.User:
			q.Before = append(q.Before, door.Message{Role: "user", Text: textOf(e.Blocks)})
		case len(q.Before) < recent && e.Kind == session.Assistant && textOf(e.Blocks) != "":
			q.Before = append(q.Before, door.Message{Role: "assistant", Text: textOf(e.Blocks)})
		case e.Kind == session.Added && e.Turn == t.number-1:
			for id := range e.Shown {
				if !isMark(id) {
					q.Shown = append(q.Shown, id)
				}
			}
		}
		if e.Kind == session.Assistant && e.Turn >= t.number-recent {
			for _, c := range callsOf(e.Blocks) {
				if id := t.named(c); id != "" && !used[id] {
					used[id] = true
					q.Used = append(q.Used, id)
				}
			}
		}
	}
	reverse(q.Before)
	return q
}

func reverse[T any](list []T) {
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
}

// named returns the capability that a call names, or "" if its arguments cannot be
// read.
func (t *turn) named(c *llm.ToolCall) capability.ID {
	if o, ok := t.known.Resolve(c.Name); ok {
		return o.ID
	}
	if c.Name == toolInvoke {
		in, _ := envelope.Read(c.Arguments) // empty if it cannot be read
		if o, ok := t.known.Resolve(in.Capability); ok {
			return o.ID
		}
		return capability.ID(in.Capability)
	}
	return ""
}

// callable reports whether something can be a tool of a model's.
func callable(e *door.Entry) bool {
	if e.State != "active" || !e.Available || e.Run == nil {
		return false
	}
	switch e.Kind {
	case capability.KindSkill, capability.KindCard, capability.KindCommand, capability.KindExtension, capability.KindChannel:
		return false
	}
	return true
}

// core returns the tools that are part of the program, which every prefix has.
// The one that reads results is Ken's own way to say more and stands with those.
func (t *turn) core() []deliver.Offer {
	var entries []*door.Entry
	for e := range t.view.Own() {
		if callable(e) && !own(e.Name) {
			entries = append(entries, e)
		}
	}
	return t.offers(entries, t.known.Taken())
}

// appeared returns the tools of the program that the model does not know yet,
// since another mode shows more of them, and the text that tells of them. The
// prefix stays as it is: they are called by their names or through the tool
// that calls any.
func (t *turn) appeared() (text string, offers []deliver.Offer) {
	known := map[capability.ID]bool{}
	for _, o := range t.known.Tools {
		known[o.ID] = true
	}
	var entries []*door.Entry
	for e := range t.view.Own() {
		if callable(e) && !own(e.Name) && !known[e.ID] && t.known.Shown[e.ID] == "" {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 || t.rung == model.PerTurn { // which shows all of them in every turn
		return "", nil
	}
	offers = t.offers(entries, t.known.Taken())
	for _, o := range offers {
		text += fmt.Sprintf("\n- %s: %s Its input schema: %s", o.Tool.Name, o.Tool.Description, bounded(string(o.Tool.Schema)))
	}
	if text == "" {
		return "", nil
	}
	return "Tools that you may call from now on besides the others, with " + toolInvoke + " where you cannot call them directly:" + text, offers
}

// all returns everything else that may be called, or nil if that is too much to
// show in full, and the list of the rest of the catalog.
func (t *turn) all(core []deliver.Offer) ([]deliver.Offer, door.Others) {
	entries, others, ok := t.everything()
	if !ok {
		return nil, door.Others{}
	}
	taken := make(map[string]session.Offer, len(core))
	for _, o := range core {
		taken[o.Tool.Name] = session.Offer{Tool: o.Tool.Name, ID: o.ID}
	}
	return t.offers(entries, taken), others
}

// everything returns the tools of the catalog and the list of its other
// entries. It returns false if that is too much or cannot be determined; the
// session then starts with less.
func (t *turn) everything() (tools []*door.Entry, others door.Others, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			t.notice("degraded", "the catalog could not be listed: "+untrusted.Line(fmt.Sprint(p), 200))
			tools, others, ok = nil, door.Others{}, false
		}
	}()
	return t.e.cfg.Door.Whole(t.view, t.scope(), callable, mostWhole)
}

// scope returns where a message of this turn comes from.
func (t *turn) scope() capability.Scope {
	scope := t.in.Scope
	scope.Session, scope.Mode, scope.Agent, scope.User = t.in.Session, t.in.Mode, t.in.Agent, t.in.Principal.ID
	return scope
}

// found returns what was found of tools, the best first.
func (t *turn) found(ids []capability.ID) []deliver.Offer {
	var entries []*door.Entry
	for _, id := range ids {
		if e, err := t.view.Lookup(string(id)); err == nil && callable(e) {
			entries = append(entries, e)
		}
	}
	return t.offers(entries, t.known.Taken())
}

// offers reads the schemas of entries. One that cannot be read is left out: it
// is found and described, and the call says what is wrong.
func (t *turn) offers(entries []*door.Entry, taken map[string]session.Offer) []deliver.Offer {
	named := make([]deliver.Named, 0, len(entries))
	out := make([]deliver.Offer, 0, len(entries))
	for _, e := range entries {
		d, err := t.e.cfg.Door.Describe(t.ctx, t.view, string(e.ID))
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.notice("degraded", "a tool is not offered: "+err.Error())
			}
			continue
		}
		named = append(named, deliver.Named{ID: e.ID, Name: e.Name, Category: e.Category})
		out = append(out, deliver.Offer{ID: e.ID, Tool: toolOf(d)})
	}
	for i, name := range deliver.Names(named, taken) {
		out[i].Tool.Name = name
	}
	return out
}

// toolOf returns a capability as a tool that has no name yet.
func toolOf(d door.Description) llm.Tool {
	return llm.Tool{Description: untrusted.Line(d.Description, 1000), Schema: plainSchema(d.Detail.Schema)}
}

// plainSchema returns a schema without its spelling.
func plainSchema(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) || json.Compact(&b, raw) != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return b.Bytes()
}

// textOf returns the text of blocks.
func textOf(blocks []llm.Block) string {
	text := ""
	for _, b := range blocks {
		if b.Text != "" {
			if text != "" {
				text += "\n"
			}
			text += b.Text
		}
	}
	return text
}

// tokens counts blocks.
func (t *turn) tokens(blocks []llm.Block) int { return prompt.Tokens(t.e.cfg.Count, blocks) }
