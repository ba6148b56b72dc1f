package clearmessage

import (
	"bytes"
	"encoding/json"
	"strconv"

	"ken/internal/untrusted"
)

// SameID returns a text that is the same for all ways to write an id: 7 is 7.0, and "a"
// is "\u0061". It is empty for what is no id. id must be valid JSON.
func SameID(id json.RawMessage) string {
	switch {
	case len(id) == 0 || id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9'):
		return ""
	case id[0] == '"' && bytes.IndexByte(id, '\\') < 0, id[0] != '"' && exactID(id):
		return string(id)
	}
	var v any
	if json.Unmarshal(id, &v) != nil {
		return ""
	}
	switch v := v.(type) {
	case string:
		return `"` + v + `"`
	case float64:
		if n := int64(v); v >= -mostID && v <= mostID && v == float64(n) {
			return strconv.FormatInt(n, 10)
		}
	}
	return ""
}

// Cancels returns the id of the request that a notification cancels, as [SameID] returns
// it. It is empty for other messages. message must be valid JSON that Unclear has no
// objection to.
func Cancels(message []byte) string {
	var method string
	var id json.RawMessage
	for name, value := range untrusted.Members(message) {
		switch name {
		case "id": // a request, and there is none of this name
			return ""
		case "method":
			_ = json.Unmarshal(value, &method) // what is no text is no such method
		case "params":
			for name, value := range untrusted.Members(value) {
				if name == "requestId" {
					id = value
				}
			}
		}
	}
	if method != "notifications/cancelled" {
		return ""
	}
	return SameID(id)
}
