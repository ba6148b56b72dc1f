package chat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ken/internal/talk/event"
)

// A form is what a capability itself asks, field by field. All of it came from
// outside.
type form struct {
	asked  event.Asked
	fields []field
	at     int
	values map[string]map[string]any // by request and field
}

// A field is one value that a request wants.
type field struct {
	request, name string
	about         string
	kind          string // a JSON type
	enum          []string
	must          bool
}

// A request is one question in the words of the protocol of tools.
type request struct {
	Method string `json:"method"`
	Params struct {
		Message string `json:"message"`
		URL     string `json:"url"`
		Schema  struct {
			Required   []string `json:"required"`
			Properties map[string]struct {
				Type        string   `json:"type"`
				Title       string   `json:"title"`
				Description string   `json:"description"`
				Enum        []string `json:"enum"`
			} `json:"properties"`
		} `json:"requestedSchema"`
	} `json:"params"`
}

func formOf(a event.Asked) *form {
	f := &form{asked: a, values: map[string]map[string]any{}}
	for _, name := range slices.Sorted(maps.Keys(a.Requests)) {
		f.values[name] = map[string]any{}
		r := requestOf(a.Requests[name])
		schema := r.Params.Schema
		for _, key := range slices.Sorted(maps.Keys(schema.Properties)) {
			p := schema.Properties[key]
			f.fields = append(f.fields, field{
				request: name, name: key, about: strings.TrimSpace(p.Title + " " + p.Description),
				kind: p.Type, enum: p.Enum, must: slices.Contains(schema.Required, key),
			})
		}
	}
	return f
}

// requestOf reads a request; what cannot be read asks nothing.
func requestOf(raw json.RawMessage) request {
	var r request
	if json.Unmarshal(raw, &r) != nil {
		return request{}
	}
	return r
}

// messages are what the requests say, and where they lead.
func messages(a event.Asked) []event.Line {
	var out []event.Line
	for _, name := range slices.Sorted(maps.Keys(a.Requests)) {
		r := requestOf(a.Requests[name])
		text := r.Params.Message
		if r.Method != "elicitation/create" {
			text = strings.TrimSpace(r.Method + " " + text)
		}
		if r.Params.URL != "" {
			text = strings.TrimSpace(text + "\n" + r.Params.URL)
		}
		out = append(out, event.Line{Name: name, Text: text})
	}
	return out
}

// over reports whether all is filled in.
func (f *form) over() bool { return f.at >= len(f.fields) }

// prompt is what to fill in next.
func (f *form) prompt() string {
	if f.over() {
		return ""
	}
	field := f.fields[f.at]
	kind := field.kind
	if len(field.enum) > 0 {
		kind = "one of " + strings.Join(field.enum, ", ")
	}
	if !field.must {
		kind += ", may be empty"
	}
	about := field.name
	if field.about != "" {
		about += ", " + field.about
	}
	return safeLine(fmt.Sprintf("%s (%s):", about, strings.TrimPrefix(kind, ", ")))
}

// take fills in a field, or says why it does not.
func (f *form) take(text string) (problem string) {
	field := f.fields[f.at]
	if text == "" {
		if field.must {
			return "it must be filled in; Esc gives no answer at all"
		}
		f.at++
		return ""
	}
	var value any = text
	var err error
	switch field.kind {
	case "integer":
		value, err = strconv.ParseInt(text, 10, 64)
	case "number":
		value, err = strconv.ParseFloat(text, 64)
	case "boolean":
		yes := slices.Contains([]string{"y", "yes", "true"}, strings.ToLower(text))
		if value = yes; !yes && !slices.Contains([]string{"n", "no", "false"}, strings.ToLower(text)) {
			return "write yes or no"
		}
	}
	if err != nil {
		return "it must be a whole number or, where it says so, a number"
	}
	if len(field.enum) > 0 && !slices.Contains(field.enum, text) {
		return "it must be one of " + safeLine(strings.Join(field.enum, ", "))
	}
	f.values[field.request][field.name] = value
	f.at++
	return ""
}

// answer is what was filled in, or that nothing is given.
func (f *form) answer(yes bool) Answer {
	a := Answer{Yes: yes, Answers: map[string]json.RawMessage{}}
	for name, content := range f.values {
		reply := map[string]any{"action": "decline"}
		if yes {
			reply = map[string]any{"action": "accept", "content": content}
		}
		raw, err := json.Marshal(reply)
		if err != nil { // a number that is none
			raw = json.RawMessage(`{"action":"decline"}`)
		}
		a.Answers[name] = raw
	}
	return a
}
