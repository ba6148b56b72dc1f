// Package tracecontext checks the values of W3C trace context, and puts them into
// messages.
package tracecontext

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// Parent reports whether s is a traceparent: a version, a trace id, a parent id and
// flags, all in lower-case hexadecimal.
func Parent(s string) bool {
	if len(s) != len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-00") {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; i {
		case 2, 35, 52:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// Header reports whether s can be a tracestate or baggage header.
func Header(s string) bool {
	return s != "" && len(s) <= 8192 && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
}

// IntoBody puts the trace context of a request's headers into the metadata of its body,
// a message of MCP, from where it reaches servers. What the body says itself stays.
func IntoBody(header http.Header, body []byte) []byte {
	parent := header.Get("Traceparent")
	if !Parent(parent) || bytes.Contains(body, []byte(`"traceparent"`)) {
		return body
	}
	var m, params, meta map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || m["method"] == nil || m["id"] == nil {
		return body
	}
	if len(m["params"]) > 0 && json.Unmarshal(m["params"], &params) != nil {
		return body
	}
	if len(params["_meta"]) > 0 && json.Unmarshal(params["_meta"], &meta) != nil {
		return body
	}
	if params == nil {
		params = map[string]json.RawMessage{}
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	for name, value := range map[string]string{"traceparent": parent, "tracestate": header.Get("Tracestate"), "baggage": header.Get("Baggage")} {
		if Header(value) {
			meta[name], _ = json.Marshal(value) // a text cannot fail
		}
	}
	params["_meta"], _ = json.Marshal(meta) // it was read from JSON
	m["params"], _ = json.Marshal(params)
	out, err := json.Marshal(m)
	if err != nil {
		return body
	}
	return out
}
