package ken

import (
	"context"
	"encoding/json"

	"ken/capability"
	"ken/internal/door"
	"ken/llm"
)

// Tools returns the tools by which a model looks for capabilities itself:
// discover_capabilities and describe_capability, which [Ken.Call] runs. They
// never change.
func (k *Ken) Tools() []llm.Tool { return k.app.Door.Tools() }

// A ToolAnswer is what one of the tools returned.
type ToolAnswer struct {
	Text   string // for the model
	Data   any    // the same as data: a [Searched] of discover_capabilities, a [Reading] of describe_capability; {"error": Text} if Failed
	Failed bool   // the model made a mistake, and Text says which
}

// Searched is what discover_capabilities found. As JSON it is the structured
// content of the answer.
type Searched struct {
	Capabilities []Listed  `json:"capabilities"` // best first
	TotalIndexed int       `json:"totalIndexed"` // capabilities that were searched
	Nearest      []Nearest `json:"nearest,omitempty"`
	Map          string    `json:"map,omitempty"` // the map by category, if the query asked for it
	Degraded     []string  `json:"degraded,omitempty"`
}

// Listed is one capability in [Searched].
type Listed struct {
	ID          capability.ID   `json:"id"`
	Name        string          `json:"name"`
	Kind        capability.Kind `json:"kind"`
	Description string          `json:"description"`
	Category    string          `json:"category"`
	Relevance   float64         `json:"relevance"` // 0–1, two decimals
	Available   bool            `json:"available"`
	Missing     []string        `json:"missing,omitempty"` // what it needs, if it is unavailable

	Loadable    bool   `json:"loadable,omitempty"`    // it is part of an extension that a person can turn on
	ExtensionID string `json:"extensionId,omitempty"` // that extension
}

// A Reading is what describe_capability read: a piece of a text and, for a
// capability, what the catalog knows about it. As JSON it is the structured
// content of the answer.
type Reading struct {
	ID    capability.ID `json:"id,omitempty"` // empty for the reference of the instance
	Text  string        `json:"text"`
	From  int           `json:"from"`           // where Text begins in the whole text, in bytes
	Bytes int           `json:"bytes"`          // length of the whole text
	Next  int           `json:"next,omitempty"` // where the rest begins; zero if there is none

	*About // nil for the reference of the instance
}

// About is what the catalog knows about a capability in addition to its text.
type About struct {
	Name         string          `json:"name"`
	Kind         capability.Kind `json:"kind"`
	Description  string          `json:"description"`
	Category     string          `json:"category"`
	Available    bool            `json:"available"`
	Missing      []string        `json:"missing,omitempty"` // what it needs, if it is unavailable
	Loadable     bool            `json:"loadable,omitempty"`
	ExtensionID  string          `json:"extensionId,omitempty"`
	Title        string          `json:"title,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  map[string]bool `json:"annotations,omitempty"` // hints of the source by their MCP names
}

// Call runs one of [Ken.Tools] with the arguments that a model gave. A mistake
// of the model is an answer with Failed set, and not an error.
func (k *Ken) Call(ctx context.Context, scope capability.Scope, tool string, arguments json.RawMessage) (ToolAnswer, error) {
	a, err := k.app.Door.Call(ctx, k.app.View(), scope, tool, arguments)
	if err != nil {
		return ToolAnswer{}, explain(err)
	}
	out := ToolAnswer{Text: a.Text, Failed: a.Failed}
	switch data := a.Data.(type) {
	case map[string]any:
		out.Data = data
	case door.Searched:
		found := Searched{Capabilities: []Listed{}, TotalIndexed: data.TotalIndexed, Nearest: nearest(data.Nearest), Map: data.Map, Degraded: data.Degraded}
		for _, c := range data.Capabilities {
			found.Capabilities = append(found.Capabilities, Listed(c))
		}
		out.Data = found
	case door.Reading:
		out.Data = Reading{ID: data.ID, Text: data.Text, From: data.From, Bytes: data.Bytes, Next: data.Next, About: (*About)(data.About)}
	}
	return out, nil
}
