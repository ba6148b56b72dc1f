package link

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// A form is what the answer to a question is completed with: by name, the
// values of fields that a person left as they were.
type form map[string]json.RawMessage

// formOf returns the defaults of an elicitation request; nil when it has none.
func formOf(request json.RawMessage) form {
	var r struct {
		Method string `json:"method"`
		Params struct {
			Schema struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"requestedSchema"`
		} `json:"params"`
	}
	if json.Unmarshal(request, &r) != nil || r.Method != "elicitation/create" {
		return nil
	}
	var out form
	for name, raw := range r.Params.Schema.Properties {
		var field struct {
			Default json.RawMessage `json:"default"`
		}
		if json.Unmarshal(raw, &field) != nil || !present(field.Default) {
			continue
		}
		if out == nil {
			out = form{}
		}
		out[name] = field.Default
	}
	return out
}

// complete returns an answer with the fields filled in that it lacks. Only one
// that accepts is changed: a person who declines gives nothing.
func (f form) complete(answer json.RawMessage) json.RawMessage {
	if len(f) == 0 {
		return answer
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(answer, &members) != nil || string(members["action"]) != `"accept"` {
		return answer
	}
	content := map[string]json.RawMessage{}
	if present(members["content"]) && json.Unmarshal(members["content"], &content) != nil {
		return answer
	}
	whole := maps.Clone(map[string]json.RawMessage(f))
	maps.Copy(whole, content)
	text, err := json.Marshal(whole)
	if err != nil {
		return answer
	}
	members["content"] = text
	if text, err = json.Marshal(members); err != nil {
		return answer
	}
	return text
}

// formsMark begins a State that holds forms beside the server's own.
const formsMark = "ken-forms."

// A held state is the server's own, and the forms of its questions: a server of
// 2026-07-28 keeps nothing, and neither does a link.
type held struct {
	State string          `json:"s,omitempty"`
	Forms map[string]form `json:"f,omitempty"`
}

// holdState returns the State of an inquiry: the server's own as it is, unless
// there are defaults to remember.
func holdState(state string, requests map[string]json.RawMessage) (string, error) {
	h := held{State: state}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		f := formOf(requests[name])
		if f == nil {
			continue
		}
		if h.Forms == nil {
			h.Forms = map[string]form{}
		}
		h.Forms[name] = f
	}
	if h.Forms == nil && !strings.HasPrefix(state, formsMark) {
		return state, nil
	}
	text, err := json.Marshal(h)
	if err != nil {
		return "", err
	}
	return formsMark + base64.RawURLEncoding.EncodeToString(text), nil
}

// openState returns what the server must see: its own state, and the completed
// answers.
func openState(state string, answers map[string]json.RawMessage) (string, map[string]json.RawMessage, error) {
	text, ours := strings.CutPrefix(state, formsMark)
	if !ours {
		return state, answers, nil
	}
	var h held
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &h) != nil {
		return "", nil, errors.New("unknown state")
	}
	answers = maps.Clone(answers)
	for name, f := range h.Forms {
		if answer, ok := answers[name]; ok {
			answers[name] = f.complete(answer)
		}
	}
	return h.State, answers, nil
}

// withParams returns a question as clients can read it: some cannot without
// parameters.
func withParams(request json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(request, &members) != nil || members == nil || present(members["params"]) {
		return request
	}
	members["params"] = emptyResult
	text, err := json.Marshal(members)
	if err != nil {
		return request
	}
	return text
}
