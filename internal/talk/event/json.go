package event

import (
	"bytes"
	"encoding/json"
)

// typed writes v, which is a struct, with its type in front.
func typed(name string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(b)+len(name)+12), `{"type":"`...)
	out = append(append(out, name...), '"')
	if rest := b[1:]; len(rest) > 1 {
		out = append(out, ',')
	}
	return append(out, b[1:]...), nil
}

// MarshalJSON writes the event with its type.
func (e Selected) MarshalJSON() ([]byte, error) {
	type plain Selected
	return typed("selected", plain(e))
}

// MarshalJSON writes the event with its type.
func (e Delta) MarshalJSON() ([]byte, error) {
	type plain Delta
	return typed("delta", plain(e))
}

// MarshalJSON writes the event with its type.
func (e Started) MarshalJSON() ([]byte, error) {
	type plain Started
	return typed("started", plain(e))
}

// MarshalJSON writes the event with its type.
func (e Output) MarshalJSON() ([]byte, error) {
	type plain Output
	return typed("output", plain(e))
}

// MarshalJSON writes the event with its type.
func (e Asked) MarshalJSON() ([]byte, error) {
	type plain Asked
	return typed("asked", plain(e))
}

// MarshalJSON writes the event with its type.
func (e Answered) MarshalJSON() ([]byte, error) {
	type plain Answered
	return typed("answered", plain(e))
}

// MarshalJSON writes the event with its type.
func (e Finished) MarshalJSON() ([]byte, error) {
	type plain Finished
	return typed("finished", plain(e))
}

// MarshalJSON writes the event with its type.
func (e Intended) MarshalJSON() ([]byte, error) {
	type plain Intended
	return typed("intended", plain(e))
}

// MarshalJSON writes the event with its type.
func (e Notice) MarshalJSON() ([]byte, error) {
	type plain Notice
	return typed("notice", plain(e))
}

// MarshalJSON writes the event with its type.
func (e Step) MarshalJSON() ([]byte, error) {
	type plain Step
	return typed("step", plain(e))
}

// MarshalJSON writes the event with its type.
func (e Done) MarshalJSON() ([]byte, error) {
	type plain Done
	return typed("done", plain(e))
}

// MarshalJSON writes arguments as they are where they are JSON, else as the
// text that the model wrote.
func (c Call) MarshalJSON() ([]byte, error) {
	type plain Call
	out := struct {
		plain
		Arguments any `json:"arguments,omitempty"`
	}{plain: plain(c)}
	switch trimmed := bytes.TrimSpace(c.Arguments); {
	case len(trimmed) == 0:
	case json.Valid(trimmed):
		out.Arguments = json.RawMessage(trimmed)
	default:
		out.Arguments = string(c.Arguments)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes: events go from one replica to another.
func (c *Call) UnmarshalJSON(data []byte) error {
	type plain Call
	in := struct {
		*plain
		Arguments json.RawMessage `json:"arguments"`
	}{plain: (*plain)(c)}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	c.Arguments = nil
	var text string
	switch {
	case len(in.Arguments) == 0:
	case json.Unmarshal(in.Arguments, &text) == nil: // it was no JSON
		c.Arguments = []byte(text)
	default:
		c.Arguments = in.Arguments
	}
	return nil
}
