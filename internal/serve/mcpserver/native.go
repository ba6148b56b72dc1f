package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/schema"
	"ken/internal/untrusted"
)

// A native is a tool as it is listed.
type native struct {
	hash, name string
	item       json.RawMessage
	output     bool      // it says what its results are like
	header     *mcp.Tool // set where arguments are in headers too
}

func (a *audience) native(ctx context.Context, v door.View, e *door.Entry, name string) (native, error) {
	d, err := a.s.cfg.Door.Describe(ctx, v, string(e.ID))
	if err != nil {
		return native{}, err
	}
	input := d.Detail.Schema
	if !isObject(input) {
		input = json.RawMessage(`{"type":"object"}`)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, schema.WithoutOwn(input)); err != nil {
		return native{}, err
	}
	n := native{hash: e.Hash, name: name}
	b := append([]byte(`{"name":`), appendText(nil, name)...)
	if e.DisplayName != "" && e.DisplayName != name {
		b = append(b, `,"title":`...)
		b = appendSafe(b, e.DisplayName)
	}
	if e.Description != "" {
		b = append(b, `,"description":`...)
		b = appendSafe(b, e.Description)
	}
	b = append(b, `,"inputSchema":`...)
	b = append(b, compact.Bytes()...)
	if output := outputSchema(d.Detail.Output); output != nil {
		n.output = true
		b = append(b, `,"outputSchema":`...)
		b = append(b, output...)
	}
	b = appendHints(b, e.Effects)
	n.item = append(b, '}')
	if bytes.Contains(input, []byte(`"x-mcp-header"`)) {
		n.header = &mcp.Tool{Name: name, InputSchema: json.RawMessage(bytes.Clone(compact.Bytes()))}
	}
	return n, nil
}

// appendSafe appends a text that a model reads, made safe, as a JSON string.
func appendSafe(b []byte, s string) []byte {
	s, _ = untrusted.Tokens(s)
	return appendText(b, s)
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// appendHints passes on what the source says of a tool's effects.
func appendHints(b []byte, e capability.Effects) []byte {
	before := len(b)
	for _, h := range [...]struct {
		name string
		hint capability.Hint
	}{{"readOnlyHint", e.ReadOnly}, {"destructiveHint", e.Destructive}, {"idempotentHint", e.Idempotent}, {"openWorldHint", e.OpenWorld}} {
		if h.hint == capability.Unsaid {
			continue
		}
		if len(b) == before {
			b = append(b, `,"annotations":{`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, h.name...)
		if h.hint == capability.Yes {
			b = append(b, `":true`...)
		} else {
			b = append(b, `":false`...)
		}
	}
	if len(b) > before {
		b = append(b, '}')
	}
	return b
}
