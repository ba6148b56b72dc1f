package openai

import "encoding/json"

// A chatThoughts is what a model thought in the forms that servers of the Chat
// wire have for it: reasoning_content (DeepSeek, vLLM, llama.cpp), reasoning
// (Ollama, OpenRouter, newer vLLM) and reasoning_details (OpenRouter), which
// alone may be signed. As JSON it is the opaque form of the history.
type chatThoughts struct {
	Content   piece        `json:"reasoning_content,omitempty"`
	Reasoning piece        `json:"reasoning,omitempty"`
	Details   []chatDetail `json:"reasoning_details,omitempty"`
}

// A chatDetail is a part of reasoning_details. It comes in fragments with the
// same index.
type chatDetail struct {
	Type      string          `json:"type"`
	ID        json.RawMessage `json:"id,omitempty"`
	Format    json.RawMessage `json:"format,omitempty"`
	Index     *int            `json:"index,omitempty"`
	Text      piece           `json:"text,omitempty"`
	Summary   piece           `json:"summary,omitempty"`
	Data      piece           `json:"data,omitempty"`
	Signature piece           `json:"signature,omitempty"`
}

func (t *chatThoughts) empty() bool {
	return len(t.Content) == 0 && len(t.Reasoning) == 0 && len(t.Details) == 0
}

// add takes what came next.
func (t *chatThoughts) add(more chatThoughts) {
	t.Content = append(t.Content, more.Content...)
	t.Reasoning = append(t.Reasoning, more.Reasoning...)
	for _, d := range more.Details {
		t.detail(d)
	}
}

func (t *chatThoughts) detail(d chatDetail) {
	if n := len(t.Details); n > 0 && d.Index != nil {
		last := &t.Details[n-1]
		if last.Index != nil && *last.Index == *d.Index && last.Type == d.Type {
			last.Text = append(last.Text, d.Text...)
			last.Summary = append(last.Summary, d.Summary...)
			last.Data = append(last.Data, d.Data...)
			last.Signature = append(last.Signature, d.Signature...)
			if len(d.ID) > 0 {
				last.ID = d.ID
			}
			if len(d.Format) > 0 {
				last.Format = d.Format
			}
			return
		}
	}
	t.Details = append(t.Details, d)
}

// text is what can be shown. Servers that send two forms send the same in both.
func (t *chatThoughts) text() string {
	if len(t.Content) > 0 {
		return string(t.Content)
	}
	if len(t.Reasoning) > 0 {
		return string(t.Reasoning)
	}
	var all []byte
	for _, d := range t.Details {
		all = append(append(all, d.Text...), d.Summary...)
	}
	return string(all)
}

// A piece is a text that grows by fragments without being copied each time.
type piece []byte

func (p piece) MarshalJSON() ([]byte, error) { return json.Marshal(string(p)) }

func (p *piece) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*p = piece(s)
	return nil
}
