package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"ken/internal/jsonappend"
	"ken/llm"
)

// A writer puts JSON together in a fixed order, so that the same request gives
// the same bytes. The first error sticks.
type writer struct {
	b   []byte
	err error
}

func (w *writer) raw(s string) { w.b = append(w.b, s...) }

// sep writes a comma unless the list or object has just begun.
func (w *writer) sep() { w.b = jsonappend.Comma(w.b) }

// field begins a member of an object.
func (w *writer) field(name string) { w.b = jsonappend.Key(w.b, name) }

func (w *writer) text(name, value string) {
	w.field(name)
	w.str(value)
}

func (w *writer) number(name string, n int) {
	w.field(name)
	w.b = strconv.AppendInt(w.b, int64(n), 10)
}

// str writes a string. What is not UTF-8 becomes U+FFFD.
func (w *writer) str(s string) { w.b = jsonappend.String(w.b, s) }

// json writes what is JSON already. Strings in it may still not be UTF-8, which
// servers refuse.
func (w *writer) json(raw []byte) {
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\ufffd"))
	}
	w.b = append(w.b, raw...)
}

// schema writes the schema of a tool as it is.
func (w *writer) schema(t llm.Tool) {
	switch {
	case len(t.Schema) == 0:
		w.raw(`{"type":"object","properties":{}}`)
	case !isObject(t.Schema):
		if w.err == nil {
			w.err = &llm.Error{Kind: llm.Invalid, Message: "the schema of the tool " + t.Name + " is not a JSON object", Fix: "fix the schema of " + t.Name}
		}
	default:
		w.json(t.Schema)
	}
}

// image writes a picture as a data URL.
func (w *writer) image(img *llm.Image) {
	w.raw(`"data:`)
	mime := img.MIME
	if !plainMIME(mime) {
		mime = "application/octet-stream"
	}
	w.raw(mime)
	w.raw(`;base64,`)
	w.b = base64.StdEncoding.AppendEncode(w.b, img.Data)
	w.raw(`"`)
}

func plainMIME(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c == '/' || c == '-' || c == '+' || c == '.' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
			return false
		}
	}
	return s != ""
}

// rawArguments is the key under which arguments travel that are no object.
const rawArguments = "_raw"

// arguments returns the arguments of an earlier call as an object: as the model
// wrote them, or their text under [rawArguments]. Servers parse them.
func arguments(text []byte) string {
	switch {
	case isObject(text):
		return string(text)
	case len(text) == 0:
		return "{}"
	}
	var w writer
	w.raw("{")
	w.text(rawArguments, string(text))
	w.raw("}")
	return string(w.b)
}

// sendable is the name of an earlier call in the letters that the wires take.
// Models invent names; the history keeps them, and a request must not fail of
// them.
func sendable(name string) string {
	fits := len(name) > 0 && len(name) <= 64
	for i := 0; fits && i < len(name); i++ {
		fits = nameByte(name[i])
	}
	if fits {
		return name
	}
	var b []byte
	for i := 0; i < len(name) && len(b) < 64; i++ {
		if nameByte(name[i]) {
			b = append(b, name[i])
		} else {
			b = append(b, '_')
		}
	}
	if len(b) == 0 {
		return "unnamed"
	}
	return string(b)
}

func nameByte(c byte) bool {
	return c == '_' || c == '-' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// texts joins the texts of blocks.
func texts(blocks []llm.Block) string {
	all := ""
	for _, b := range blocks {
		switch {
		case b.Text == "":
		case all == "":
			all = b.Text
		default:
			all += "\n\n" + b.Text
		}
	}
	return all
}

// own returns what this package put under the name of a wire into the opaque part
// of a call, and nothing of what another wire put there.
func own(opaque json.RawMessage, wire string) json.RawMessage {
	if len(opaque) == 0 {
		return nil
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(opaque, &all) != nil {
		return nil
	}
	return all[wire]
}

// offered returns the names that may be called now, of those allowed: in the
// order of the tools, first the list's and then those given on the way.
func offered(req llm.Request) []string {
	allowed := make(map[string]bool, len(req.Allowed))
	for _, name := range req.Allowed {
		allowed[name] = true
	}
	var names []string
	add := func(tools []llm.Tool) {
		for _, t := range tools {
			if allowed[t.Name] {
				allowed[t.Name] = false // once
				names = append(names, t.Name)
			}
		}
	}
	add(req.Tools)
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			add(b.Tools)
			if b.Result != nil {
				for _, inner := range b.Result.Blocks {
					add(inner.Tools)
				}
			}
		}
	}
	return names
}
