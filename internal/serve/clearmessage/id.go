package clearmessage

import (
	"bytes"
	"encoding/json"
	"strconv"

	"ken/internal/untrusted"
)

// SameID returns an id in one form, however it was written: 7.0 becomes 7, and "\u0061"
// becomes "a". It returns "" if the value cannot be an id. id must be valid JSON.
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

// Cancels returns the id of the request that a notification cancels, in the form of
// [SameID]. It returns "" for other messages. message must be valid JSON that Unclear
// accepts.
func Cancels(message []byte) string {
	var method string
	var id json.RawMessage
	for name, value := range untrusted.Members(message) {
		switch name {
		case "id": // a request; a cancellation is a notification and has no id
			return ""
		case "method":
			_ = json.Unmarshal(value, &method) // a value that is not a string leaves method empty
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
