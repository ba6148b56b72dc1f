package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/jsonappend"
	"ken/internal/schema"
	"ken/internal/untrusted"
)

// A native is a tool as it is listed.
type native struct {
	hash, name string
	item       json.RawMessage
	output     bool       // it says what its results are like
	header     *mcp.Tool  // set where arguments are in headers too
	pages      *offerings // of the time when it was made, for a tool with a page
}

func (a *audience) native(ctx context.Context, v door.View, e *door.Entry, name string, shown *offerings) (native, error) {
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
	b := append([]byte(`{"name":`), jsonappend.String(nil, name)...)
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
	extra := d.Detail.Extra
	if page := a.s.page(e).Address; page != "" {
		n.pages, extra = shown, shown.atAlias(e, page, extra)
	}
	b = appendExtraOfTool(b, e.Effects, extra)
	n.item = append(b, '}')
	if bytes.Contains(input, []byte(`"x-mcp-header"`)) {
		n.header = &mcp.Tool{Name: name, InputSchema: json.RawMessage(bytes.Clone(compact.Bytes()))}
	}
	return n, nil
}

// appendSafe appends a text that a model reads, made safe, as a JSON string.
func appendSafe(b []byte, s string) []byte {
	s, _ = untrusted.Tokens(s)
	return jsonappend.String(b, s)
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// appendExtraOfTool passes on what the source says of a tool's effects, and the
// members that clients read and Ken does not.
func appendExtraOfTool(b []byte, e capability.Effects, extra json.RawMessage) []byte {
	var more struct {
		Icons       json.RawMessage            `json:"icons"`
		Meta        json.RawMessage            `json:"_meta"`
		Annotations map[string]json.RawMessage `json:"annotations"`
	}
	if len(extra) > 0 {
		_ = json.Unmarshal(extra, &more) // Ken wrote the object itself
	}
	before := len(b)
	annotation := func(name string) {
		if len(b) == before {
			b = append(b, `,"annotations":{`...)
		} else {
			b = append(b, ',')
		}
		b = append(jsonappend.String(b, name), ':')
	}
	for _, name := range slices.Sorted(maps.Keys(more.Annotations)) {
		annotation(name)
		var text string
		if json.Unmarshal(more.Annotations[name], &text) == nil {
			b = appendSafe(b, text)
		} else {
			b = append(b, more.Annotations[name]...)
		}
	}
	for _, h := range [...]struct {
		name string
		hint capability.Hint
	}{{"readOnlyHint", e.ReadOnly}, {"destructiveHint", e.Destructive}, {"idempotentHint", e.Idempotent}, {"openWorldHint", e.OpenWorld}} {
		if h.hint != capability.Unsaid {
			annotation(h.name)
			b = strconv.AppendBool(b, h.hint == capability.Yes)
		}
	}
	if len(b) > before {
		b = append(b, '}')
	}
	if len(more.Icons) > 0 {
		b = append(append(b, `,"icons":`...), more.Icons...)
	}
	if len(more.Meta) > 0 {
		b = append(append(b, `,"_meta":`...), more.Meta...)
	}
	return b
}
