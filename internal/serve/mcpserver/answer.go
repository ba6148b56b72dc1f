package mcpserver

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/jsonappend"
)

// An answer is a result that is JSON already. The SDK adds to its _meta, so
// each request gets an answer of its own; the body may be shared.
type answer struct {
	mcp.ResultBase
	body []byte // an object without _meta
}

// MarshalJSON returns the body with the metadata.
func (a *answer) MarshalJSON() ([]byte, error) {
	if len(a.Meta) == 0 {
		return a.body, nil
	}
	meta, err := appendMeta(make([]byte, 0, 256), a.Meta)
	if err != nil {
		return nil, err
	}
	return a.appendWith(make([]byte, 0, len(a.body)+len(meta)+12), meta), nil
}

// appendMeta appends metadata as an object, in the order of its names. Nearly all
// results of tools have some, so it does not go through encoding/json.
func appendMeta(b []byte, meta mcp.Meta) ([]byte, error) {
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(meta)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsonappend.String(b, key), ':')
		switch value := meta[key].(type) {
		case json.RawMessage:
			b = append(b, value...)
		default:
			raw, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			b = append(b, raw...)
		}
	}
	return append(b, '}'), nil
}

// appendWith appends the body with this for _meta.
func (a *answer) appendWith(b, meta []byte) []byte {
	b = append(b, a.body[:len(a.body)-1]...)
	if len(a.body) > 2 {
		b = append(b, ',')
	}
	b = append(b, `"_meta":`...)
	b = append(b, meta...)
	return append(b, '}')
}

// complete begins the body of a final result.
func complete(modern bool) []byte {
	if modern {
		return []byte(`{"resultType":"complete",`)
	}
	return []byte{'{'}
}

// cacheable is how long, and for whom, lists may be kept by a client. Lists
// depend on who asks.
const cacheable = `"ttlMs":60000,"cacheScope":"private",`

// completeList is complete for results that a client may keep.
func completeList(modern bool) []byte {
	b := complete(modern)
	if modern {
		b = append(b, cacheable...)
	}
	return b
}

// said is a tool result of one text.
func said(modern bool, text string, failed bool) *answer {
	b := complete(modern)
	b = append(b, `"content":[{"type":"text","text":`...)
	b = jsonappend.String(b, text)
	b = append(b, `}]`...)
	if failed {
		b = append(b, `,"isError":true`...)
	}
	return &answer{body: append(b, '}')}
}

// fault is a JSON-RPC error.
func fault(code int64, message string, data any) error {
	e := &jsonrpc.Error{Code: code, Message: message}
	if data != nil {
		if raw, err := json.Marshal(data); err == nil {
			e.Data = raw
		}
	}
	return e
}
