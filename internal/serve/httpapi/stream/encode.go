package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/talk/event"
)

// mostResult is how much of a call's result an event has, in bytes.
const mostResult = 16 << 10

// encode writes an event. The part is set where it is a fragment.
func encode(ev event.Event) (name string, data []byte, part fragment, err error) {
	switch e := ev.(type) {
	case event.Selected:
		name = "selected"
	case event.Delta:
		name = "delta"
		e.Text, e.Thought = valid(e.Text), valid(e.Thought)
		ev = e
		switch {
		case e.Thought == "" && e.Text != "":
			part = fragment{text, e.Text}
		case e.Text == "" && e.Thought != "":
			part = fragment{thought, e.Thought}
		}
	case event.Started:
		name = "started"
	case event.Output:
		name = "output"
	case event.Asked:
		name = "asked"
	case event.Answered:
		name = "answered"
	case event.Finished:
		name = "finished"
		e.Result = excerpt(e.Result, mostResult)
		ev = e
	case event.Intended:
		name = "intended"
	case event.Notice:
		name = "notice"
	case event.Step:
		name = "step"
	case event.Done:
		name = "done"
	default:
		return fmt.Sprintf("%T", ev), nil, part, fmt.Errorf("%T is not known", ev)
	}
	data, err = json.Marshal(ev)
	return name, data, part, err
}

// valid is a text in which each byte that is none is shown as such, so that it
// is the same alone and joined with others.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func encodeFragment(k kind, s string) []byte {
	d := event.Delta{Text: s}
	if k == thought {
		d = event.Delta{Thought: s}
	}
	data, _ := json.Marshal(d) // texts always marshal
	return data
}

func encodeSaid(b Begin) []byte {
	data, _ := json.Marshal(struct { // which always marshals
		Type   string `json:"type"`
		Turn   int    `json:"turn"`
		Text   string `json:"text"`
		Mode   string `json:"mode,omitempty"`
		Images int    `json:"images,omitempty"`
	}{"said", b.Turn, b.Said, b.Input.Mode, len(b.Input.Images)})
	return data
}

func encodeFailed(p *wire.Problem) []byte {
	data, err := json.Marshal(struct {
		Type    string         `json:"type"`
		Problem map[string]any `json:"problem"`
	}{"failed", p.Document()})
	if err != nil {
		return []byte(`{"type":"failed","problem":{"title":"","status":500,"code":"internal","detail":"it cannot be told why"}}`)
	}
	return data
}

// excerpt is a result as an event has it: what is long is cut, and data are
// named. The whole is in the session, or under the handle.
func excerpt(r capability.Result, room int) capability.Result {
	parts := make([]capability.Part, 0, len(r.Parts))
	for _, p := range r.Parts {
		p.Extra = nil
		switch {
		case p.Data != nil:
			p.Text, p.Data = fmt.Sprintf("[%d bytes of %s]", len(p.Data), cut(p.MIME, 80)), nil
		case len(p.JSON) > room:
			p.Text, p.JSON = cut(string(p.JSON), room), nil
		default:
			p.Text = cut(p.Text, room)
		}
		p.Link = cut(p.Link, 2000)
		room = max(room-len(p.Text)-len(p.JSON), 256)
		if parts = append(parts, p); len(parts) == 64 && len(r.Parts) > 64 {
			parts = append(parts, capability.Part{Text: fmt.Sprintf("[64 of %d parts]", len(r.Parts))})
			break
		}
	}
	r.Parts = parts
	return r
}

// cut is the beginning of a text, which says so.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	at := most
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return fmt.Sprintf("%s… [%d of %d bytes]", s[:at], at, len(s))
}

// shrink returns an event with its texts cut, so that it has at most so many bytes.
// What cannot be made to fit keeps its name and its id.
func shrink(name string, data []byte, most int) []byte {
	for limit := most / 4; limit >= 64; limit /= 4 {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var v map[string]any
		if dec.Decode(&v) != nil {
			break
		}
		delete(v, "type")
		cutTexts(v, limit)
		if out, err := json.Marshal(v); err == nil && len(out)+len(name)+11 <= most {
			head := `{"type":"` + name + `"`
			if len(v) > 0 {
				head += ","
			}
			return append([]byte(head), out[1:]...)
		}
	}
	var id struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(data, &id) // it has none then
	out, _ := json.Marshal(struct {
		Type string `json:"type"`
		ID   string `json:"id,omitempty"`
		Cut  bool   `json:"cut"`
	}{name, strings.ToValidUTF8(id.ID[:min(len(id.ID), 200)], ""), true})
	return out
}

// cutTexts cuts the texts within a value, but not the names of members.
func cutTexts(v any, most int) any {
	switch v := v.(type) {
	case string:
		return cut(v, most)
	case []any:
		for i := range v {
			v[i] = cutTexts(v[i], most)
		}
	case map[string]any:
		for name := range v {
			v[name] = cutTexts(v[name], most)
		}
	}
	return v
}
