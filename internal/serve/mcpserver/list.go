package mcpserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"ken/internal/jsonappend"
)

// pageSize is how many tools, prompts or resources one page of a list holds.
const pageSize = 1000

// A list is what a client is shown of one kind, in the order of the names. It
// does not change.
type list struct {
	field string // "tools", "prompts", …
	hash  string
	names []string
	items []json.RawMessage
	first [2][]byte // the first page, for clients of before and from 2026-07-28
}

func newList(field string, names []string, items []json.RawMessage) *list {
	l := &list{field: field, names: names, items: items}
	h := sha256.New()
	for _, item := range items {
		h.Write(item)
	}
	l.hash = hex.EncodeToString(h.Sum(nil)[:12])
	for i := range l.first {
		l.first[i] = l.page(0, i == 1)
	}
	return l
}

func (l *list) page(from int, modern bool) []byte {
	to := min(from+pageSize, len(l.items))
	b := completeList(modern)
	if to < len(l.items) {
		b = append(b, `"nextCursor":`...)
		b = jsonappend.String(b, base64.RawURLEncoding.EncodeToString([]byte(l.names[to-1])))
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, l.field...)
	b = append(b, `":[`...)
	for i, item := range l.items[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, `]}`...)
}

// answer returns the page that a cursor asks for. A cursor names the last item of
// the page before, so it means something in a list that has changed since.
func (l *list) answer(cursor string, modern bool) (*answer, error) {
	if cursor == "" {
		i := 0
		if modern {
			i = 1
		}
		return &answer{body: l.first[i]}, nil
	}
	last, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, fault(jsonrpc.CodeInvalidParams, "there is no such cursor; list from the beginning", nil)
	}
	from, found := slices.BinarySearch(l.names, string(last))
	if found {
		from++
	}
	return &answer{body: l.page(from, modern)}, nil
}
