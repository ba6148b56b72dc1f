package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"ken/capability"
	"ken/llm"
)

// kept returns an entry that was encoded without an error as it will be decoded,
// which is several times as much work: without what is empty, with JSON in its
// shortest form, and sharing nothing with e that could be changed. It reports
// false where it does not know: for text that is none.
func kept(e Entry) (Entry, bool) {
	c := copier{text: true}
	c.texts(string(e.Kind), e.System, e.Name, e.Text)
	e.Blocks, e.Tools = c.blocks(e.Blocks), c.tools(e.Tools)
	for _, o := range e.Offers {
		c.texts(o.Tool, string(o.ID), o.Action)
	}
	e.Offers = full(slices.Clone(e.Offers))
	shown := e.Shown
	if e.Shown = nil; len(shown) > 0 {
		e.Shown = make(map[capability.ID]string, len(shown))
	}
	for id, hash := range shown {
		c.texts(string(id), hash)
		e.Shown[id] = hash
	}
	if e.Usage != nil {
		u := *e.Usage
		e.Usage = &u
	}
	return e, c.text
}

// full is nil for what is empty, which JSON leaves out, and has no room.
func full[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return slices.Clip(list)
}

type copier struct {
	text bool // all that was seen is text
}

func (c *copier) texts(list ...string) {
	for _, s := range list {
		c.text = c.text && utf8.ValidString(s)
	}
}

func (c *copier) blocks(list []llm.Block) []llm.Block {
	list = full(slices.Clone(list))
	for i := range list {
		b := &list[i]
		c.texts(b.Text)
		if b.Image != nil {
			c.texts(b.Image.MIME)
			b.Image = &llm.Image{MIME: b.Image.MIME, Data: bytes.Clone(b.Image.Data)}
		}
		if b.Call != nil {
			call := *b.Call
			c.texts(call.ID, call.Name)
			call.Arguments, call.Opaque = bytes.Clone(call.Arguments), c.json(call.Opaque)
			b.Call = &call
		}
		if b.Result != nil {
			r := *b.Result
			c.texts(r.ID, r.Name)
			r.Blocks = c.blocks(r.Blocks)
			b.Result = &r
		}
		if b.Reasoning != nil {
			r := *b.Reasoning
			c.texts(r.Text, r.Wire)
			r.Opaque = c.json(r.Opaque)
			b.Reasoning = &r
		}
		b.Tools = c.tools(b.Tools)
	}
	return list
}

func (c *copier) tools(list []llm.Tool) []llm.Tool {
	list = full(slices.Clone(list))
	for i := range list {
		t := &list[i]
		c.texts(t.Name, t.Description)
		if t.Schema = c.json(t.Schema); t.Schema == nil {
			t.Schema = json.RawMessage("null")
		}
	}
	return list
}

func (c *copier) json(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	var b bytes.Buffer
	b.Grow(len(raw))
	if json.Compact(&b, raw) != nil {
		c.text = false
	}
	return b.Bytes()
}
