package clearmessage

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"ken/internal/jsonvalid"
	"ken/internal/untrusted"
)

// A ToolCall is a plain request of tools/call. Its parts are in the text that it was
// read from.
type ToolCall struct {
	ID              json.RawMessage // a text, or a whole number that every decoder represents exactly
	Name            string
	Arguments, Meta json.RawMessage // nil: not there
}

// ReadToolCall reads a request of tools/call in one pass. It reports false for other
// messages, and for a request with members that it does not know or that is unusual in
// another way: those are for the SDK to read. Members that occur twice in the request
// or its parameters are unusual; deeper ones are not looked at.
func ReadToolCall(data []byte) (c ToolCall, ok bool) {
	if !jsonvalid.Within(data, mostDepth) {
		return c, false
	}
	var version, method, params json.RawMessage
	for name, value := range untrusted.Members(data) {
		var to *json.RawMessage
		switch name {
		case "jsonrpc":
			to = &version
		case "id":
			to = &c.ID
		case "method":
			to = &method
		case "params":
			to = &params
		default:
			return c, false
		}
		if *to != nil {
			return c, false
		}
		*to = value
	}
	if string(version) != `"2.0"` || string(method) != `"tools/call"` || !plainID(c.ID) {
		return c, false
	}
	var tool json.RawMessage
	for name, value := range untrusted.Members(params) {
		switch {
		case name == "name" && tool == nil:
			tool = value
		case name == "arguments" && c.Arguments == nil:
			c.Arguments = value
		case name == "_meta" && c.Meta == nil:
			c.Meta = value
		default:
			return c, false
		}
	}
	c.Name, ok = jsonvalid.Text(tool)
	return c, ok && c.Name != ""
}

// plainID reports whether an id is a text without escapes, or a number, that Unclear
// lets through.
func plainID(id json.RawMessage) bool {
	if text, ok := jsonvalid.Text(id); ok {
		return !strings.ContainsRune(text, utf8.RuneError)
	}
	return len(id) > 0 && (id[0] == '-' || id[0] >= '0' && id[0] <= '9') && exactID(id)
}
